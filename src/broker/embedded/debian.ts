import { existsSync } from "node:fs"
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Result } from "effect"
import type { ReportProgress, Source } from "./source.ts"
import { ObtainFailed, run } from "./source.ts"

const updateTimeoutMs = 180_000
const downloadTimeoutMs = 120_000
const extractTimeoutMs = 30_000

const deb822Fields = (stanza: string): ReadonlyMap<string, string> => {
  const fields = new Map<string, string>()
  let name = ""
  for (const line of stanza.split("\n")) {
    if (line.startsWith("#")) continue
    const field = /^([A-Za-z][A-Za-z-]*):[ \t]*(.*)$/.exec(line)
    if (field !== null) {
      name = (field[1] ?? "").toLowerCase()
      fields.set(name, (field[2] ?? "").trimEnd())
    } else if (/^[ \t]/.test(line) && name !== "")
      fields.set(name, `${fields.get(name) ?? ""}\n${line.trimEnd()}`)
  }
  return fields
}

const words = (text: string | undefined): ReadonlyArray<string> =>
  (text ?? "").split(/\s+/).filter((word) => word !== "")

const isMirror = (uri: string) => /^(https?|file|mirror\+|tor\+)/.test(uri)

const mirrorsIn822 = (text: string, suites: ReadonlyArray<string>): ReadonlyArray<string> =>
  text.split(/\n[ \t]*\n/).flatMap((stanza) => {
    const fields = deb822Fields(stanza)
    const isMeant =
      fields.get("enabled")?.toLowerCase() !== "no" &&
      words(fields.get("types")).includes("deb") &&
      words(fields.get("components")).includes("main") &&
      words(fields.get("suites")).some((suite) => suites.includes(suite))
    return isMeant ? words(fields.get("uris")).filter(isMirror) : []
  })

const mirrorsInList = (text: string, suites: ReadonlyArray<string>): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const match = /^\s*deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line)
    if (match === null) return []
    const [, uri = "", suite = "", components = ""] = match
    const isMeant = suites.includes(suite) && words(components).includes("main")
    return isMeant && isMirror(uri) ? [uri] : []
  })

/** Mirrors that are tried: others' archives may be among them, which Debian's keys do not verify. */
const maxMirrors = 3

/**
 * Returns addresses in apt's source files that may be mirrors of Debian's main archive: whoever else
 * has a suite `stable` with a component `main` is among them. Keys that the files name are left out,
 * for a source says itself who signs it.
 *
 * @param files name and text, in apt's order; `.sources` is deb822, `.list` one line per source.
 * @param codename the release that this machine runs ("trixie"). It tells the main archive from
 * those for updates, security and others.
 */
export const findMirrors = (
  files: ReadonlyArray<{ readonly name: string; readonly text: string }>,
  codename: string | undefined
): ReadonlyArray<string> => {
  const suites = ["stable", "testing", "unstable", "sid"]
  if (codename !== undefined) suites.push(codename)
  const found = files.flatMap(({ name, text }) =>
    name.endsWith(".sources") ? mirrorsIn822(text, suites) : mirrorsInList(text, suites)
  )
  return [...new Set(found)].slice(0, maxMirrors)
}

const readOrEmpty = (path: string) => readFile(path, "utf8").catch(() => "")

const readSources = async (aptDirectory: string) => {
  const parts = join(aptDirectory, "sources.list.d")
  const names = (await readdir(parts).catch(() => [])).filter((name) =>
    /\.(list|sources)$/.test(name)
  )
  const paths = [join(aptDirectory, "sources.list"), ...names.sort().map((n) => join(parts, n))]
  return Promise.all(paths.map(async (name) => ({ name, text: await readOrEmpty(name) })))
}

const osRelease = async () => {
  const text = await readOrEmpty("/etc/os-release")
  const value = (key: string) => new RegExp(`^${key}="?([^"\n]*)"?$`, "m").exec(text)?.[1]
  return { id: value("ID"), codename: value("VERSION_CODENAME") }
}

/**
 * The configuration clears the hooks of the machine's own apt, which would tidy its caches after
 * this update.
 */
const aptConfig = (directory: string) => `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "${directory}/petrel.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::State "${directory}/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "${directory}/cache";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
Acquire::Retries "1";
Acquire::http::Timeout "10";
Acquire::https::Timeout "10";
`

const aptSources = (mirror: string, keyring: string) =>
  [
    "Types: deb",
    `URIs: ${mirror}`,
    "Suites: sid",
    "Components: main",
    "Targets: Packages",
    `Signed-By: ${keyring}`,
    ""
  ].join("\n")

/** Debian's own keys, which its package debian-archive-keyring installs. */
const keyrings = ["pgp", "gpg"].map((kind) => `/usr/share/keyrings/debian-archive-keyring.${kind}`)

const prepare = async (directory: string, mirror: string, keyring: string) => {
  // When run as root, apt fetches as the user _apt, who must be able to enter the directory.
  await chmod(directory, 0o755)
  await mkdir(join(directory, "state/lists/partial"), { recursive: true })
  await mkdir(join(directory, "cache/archives/partial"), { recursive: true })
  await writeFile(join(directory, "petrel.sources"), aptSources(mirror, keyring))
  await writeFile(join(directory, "apt.conf"), aptConfig(directory))
}

const obtainFrom = Effect.fnUntraced(function* (
  mirror: string,
  keyring: string,
  directory: string,
  progress: ReportProgress
) {
  yield* Effect.tryPromise({
    try: () => prepare(directory, mirror, keyring),
    catch: (cause) => new ObtainFailed({ message: String(cause) })
  })
  const onLine = (line: string) => {
    const got = /^Get:\d+ (.*)$/.exec(line)?.[1]
    if (got !== undefined) progress(`  ${got}`)
  }
  const apt = (...args: ReadonlyArray<string>) => ["-c", join(directory, "apt.conf"), ...args]
  progress(`fetching Debian's package of nats-server from ${mirror} (about 16 MB)`)
  yield* run("apt-get", apt("update"), {
    timeoutMs: updateTimeoutMs,
    cwd: directory,
    onLine
  })
  yield* run("apt-get", apt("download", "nats-server/sid"), {
    timeoutMs: downloadTimeoutMs,
    cwd: directory,
    onLine
  })
  const names = yield* Effect.promise(() => readdir(directory))
  const archive = names.find((name) => name.endsWith(".deb"))
  if (archive === undefined)
    return yield* new ObtainFailed({ message: "apt-get left no package behind" })
  yield* run("dpkg", ["-x", archive, "package"], {
    timeoutMs: extractTimeoutMs,
    cwd: directory
  })
  return join(directory, "package/usr/sbin/nats-server")
})

/**
 * Debian's package from sid, which has no dependencies that older releases do not have. It comes from a
 * mirror that this machine uses, and apt checks its signature by Debian's own keys, whatever keys the
 * machine's source names. Sources list, state and cache are temporary: nothing is installed, apt's own
 * files do not change, and root is not needed.
 *
 * @param aptDirectory directory of the machine's sources. (Default: /etc/apt)
 */
export const debianPackage = (aptDirectory = "/etc/apt"): Source => ({
  name: "Debian's package",
  obtain: Effect.fnUntraced(function* (directory, progress) {
    if (process.platform !== "linux") return undefined
    const os = yield* Effect.promise(osRelease)
    if (os.id !== "debian") return undefined
    const keyring = keyrings.find((path) => existsSync(path))
    if (keyring === undefined)
      return yield* new ObtainFailed({
        message: "this machine has no keys of Debian (its package debian-archive-keyring)"
      })
    const files = yield* Effect.promise(() => readSources(aptDirectory))
    const mirrors = findMirrors(files, os.codename)
    const reasons: Array<string> = []
    for (const mirror of mirrors) {
      const found = yield* Effect.result(obtainFrom(mirror, keyring, directory, progress))
      if (Result.isSuccess(found)) return found.success
      reasons.push(`${mirror}: ${found.failure.message}`)
    }
    return yield* new ObtainFailed({
      message: reasons.join("; ") || "apt's sources name no mirror of Debian"
    })
  })
})
