import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import type { Source } from "./source.ts"
import { ObtainFailed, run } from "./source.ts"

/** A Debian mirror from this machine's apt sources. */
export interface Mirror {
  readonly uri: string
  /** The verbatim Signed-By field: paths of keyrings, or a key with its continuation lines. */
  readonly signedBy?: string
}

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

const mirrorIn822 = (text: string, suites: ReadonlyArray<string>): Mirror | undefined => {
  for (const stanza of text.split(/\n[ \t]*\n/)) {
    const fields = deb822Fields(stanza)
    const uri = words(fields.get("uris")).find(isMirror)
    if (
      uri === undefined ||
      fields.get("enabled")?.toLowerCase() === "no" ||
      !words(fields.get("types")).includes("deb") ||
      !words(fields.get("components")).includes("main") ||
      !words(fields.get("suites")).some((suite) => suites.includes(suite))
    )
      continue
    const signedBy = fields.get("signed-by")
    return signedBy === undefined ? { uri } : { uri, signedBy }
  }
  return undefined
}

const mirrorInList = (text: string, suites: ReadonlyArray<string>): Mirror | undefined => {
  for (const line of text.split("\n")) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line)
    if (match === null) continue
    const [, options = "", uri = "", suite = "", components = ""] = match
    if (!isMirror(uri) || !suites.includes(suite) || !words(components).includes("main")) continue
    const signedBy = /(?:^|\s)signed-by=(\S+)/.exec(options)?.[1]
    return signedBy === undefined ? { uri } : { uri, signedBy: signedBy.split(",").join(" ") }
  }
  return undefined
}

/**
 * Returns the first mirror of Debian's main archive in apt's source files.
 *
 * @param files name and text, in apt's order; `.sources` is deb822, `.list` one line per source.
 * @param codename the release that this machine runs ("trixie"). It tells the main archive from
 * those for updates, security and others.
 */
export const findMirror = (
  files: ReadonlyArray<{ readonly name: string; readonly text: string }>,
  codename: string | undefined
): Mirror | undefined => {
  const suites = ["stable", "testing", "unstable", "sid"]
  if (codename !== undefined) suites.push(codename)
  for (const { name, text } of files) {
    const found = name.endsWith(".sources") ? mirrorIn822(text, suites) : mirrorInList(text, suites)
    if (found !== undefined) return found
  }
  return undefined
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
Acquire::Retries "1";
Acquire::http::Timeout "10";
Acquire::https::Timeout "10";
`

const aptSources = (mirror: Mirror, signedBy: string | undefined) =>
  [
    "Types: deb",
    `URIs: ${mirror.uri}`,
    "Suites: sid",
    "Components: main",
    "Targets: Packages",
    ...(signedBy === undefined ? [] : [`Signed-By: ${signedBy}`]),
    ""
  ].join("\n")

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

const prepare = async (directory: string, mirror: Mirror) => {
  // When run as root, apt fetches as the user _apt, who must be able to enter the directory.
  await chmod(directory, 0o755)
  await mkdir(join(directory, "state/lists/partial"), { recursive: true })
  await mkdir(join(directory, "cache/archives/partial"), { recursive: true })
  const hasKeyring = (await readFile(debianKeyring).catch(() => undefined)) !== undefined
  const signedBy = mirror.signedBy ?? (hasKeyring ? debianKeyring : undefined)
  await writeFile(join(directory, "petrel.sources"), aptSources(mirror, signedBy))
  await writeFile(join(directory, "apt.conf"), aptConfig(directory))
}

/**
 * Debian's package from sid, which has no dependencies that older releases lack. It comes from the
 * mirror that this machine uses, and apt checks its signature. Sources list, state and cache are
 * temporary: nothing is installed, apt's own files do not change, and root is not needed.
 *
 * @param aptDirectory directory of the machine's sources. (Default: /etc/apt)
 */
export const debianPackage = (aptDirectory = "/etc/apt"): Source => ({
  name: "Debian's package",
  obtain: Effect.fnUntraced(function* (directory, progress) {
    if (process.platform !== "linux") return undefined
    const os = yield* Effect.promise(osRelease)
    if (os.id !== "debian") return undefined
    const files = yield* Effect.promise(() => readSources(aptDirectory))
    const mirror = findMirror(files, os.codename)
    if (mirror === undefined)
      return yield* new ObtainFailed({ message: "apt's sources name no mirror of Debian" })
    yield* Effect.tryPromise({
      try: () => prepare(directory, mirror),
      catch: (cause) => new ObtainFailed({ message: String(cause) })
    })
    const onLine = (line: string) => {
      const got = /^Get:\d+ (.*)$/.exec(line)?.[1]
      if (got !== undefined) progress(`  ${got}`)
    }
    const apt = (...args: ReadonlyArray<string>) => ["-c", join(directory, "apt.conf"), ...args]
    progress(`fetching Debian's package of nats-server from ${mirror.uri} (about 16 MB)`)
    yield* run("apt-get", apt("update"), { timeoutMs: updateTimeoutMs, cwd: directory, onLine })
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
})
