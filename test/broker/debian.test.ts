import { execFile } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, beforeEach } from "vitest"
import { defaultSources, findNatsServer } from "../../src/broker/embedded/binary.ts"
import { debianPackage, findMirrors } from "../../src/broker/embedded/debian.ts"
import { isLong } from "../kit/long.ts"

const exec = promisify(execFile)

let directory = ""
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "petrel-test-debian-"))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

describe("Debian's mirror", () => {
  const key = "/usr/share/keyrings/debian-archive-keyring.gpg"
  const deb822 = (fields: string) => [{ name: "debian.sources", text: fields }]

  it("is read from deb822 sources, past other stanzas", () => {
    const files = deb822(`# a comment
Types: deb
URIs: http://mirror.example/debian-security
Suites: trixie-security
Components: main

Types: deb deb-src
URIs: http://mirror.example/debian
# another comment
Suites: trixie trixie-updates
Components: main contrib
Signed-By: ${key}
`)
    assert.deepStrictEqual(findMirrors(files, "trixie"), ["http://mirror.example/debian"])
  })

  it("may be one of several that say they are, three at most", () => {
    const stanza = (host: string) =>
      `Types: deb\nURIs: https://${host}/apt\nSuites: stable\nComponents: main\nSigned-By: /etc/own.gpg\n`
    const all = ["a", "b", "a", "c", "d"].map(stanza).join("\n")
    assert.deepStrictEqual(
      findMirrors(deb822(all), undefined),
      ["a", "b", "c"].map((host) => `https://${host}/apt`)
    )
  })

  it("is not one that is disabled, for sources only, or for another distribution", () => {
    const stanza = (more: string) =>
      `Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n${more}`
    assert.isEmpty(findMirrors(deb822(stanza("Enabled: no")), "trixie"))
    assert.isEmpty(
      findMirrors(deb822(stanza("").replace("Types: deb", "Types: deb-src")), "trixie")
    )
    assert.isEmpty(findMirrors(deb822(stanza("").replace("main", "stable")), "trixie"))
    assert.isEmpty(findMirrors(deb822(stanza("")), "bookworm"))
  })

  it("is read from one-line sources with and without options", () => {
    const list = (text: string) => [{ name: "sources.list", text }]
    assert.deepStrictEqual(
      findMirrors(
        list(`# deb http://commented.example/debian bookworm main
deb cdrom:[Debian GNU/Linux 12]/ bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=${key}] http://mirror.example/debian bookworm main non-free # ours`),
        "bookworm"
      ),
      ["http://mirror.example/debian"]
    )
    assert.deepStrictEqual(findMirrors(list("deb http://mirror.example/debian stable main"), "x"), [
      "http://mirror.example/debian"
    ])
  })
})

const isDebian =
  existsSync("/usr/bin/apt-get") &&
  existsSync("/etc/os-release") &&
  /^ID="?debian"?$/m.test(readFileSync("/etc/os-release", "utf8"))

/** An archive of packages as anybody can make one, with a nats-server of its own and a key of its own. */
const othersArchive = async () => {
  const home = join(directory, "gnupg")
  const archive = join(directory, "archive")
  const key = join(directory, "own.gpg")
  const { stdout: dpkg } = await exec("dpkg", ["--print-architecture"])
  const arch = dpkg.trim()
  const packages = `main/binary-${arch}`
  const build = join(directory, "build")
  const script = [
    `mkdir -m 700 ${home}`,
    `mkdir -p ${archive}/dists/sid/${packages} ${build}/DEBIAN ${build}/usr/sbin`,
    `printf '#!/bin/sh\\necho nats-server: v9.9.9\\n' > ${build}/usr/sbin/nats-server`,
    `chmod 755 ${build}/usr/sbin/nats-server`,
    `printf 'Package: nats-server\\nVersion: 9.9.9\\nArchitecture: ${arch}\\nMaintainer: a <a@example.com>\\nDescription: a\\n' > ${build}/DEBIAN/control`,
    `dpkg-deb -b ${build} ${archive}/a.deb`,
    `cd ${archive}/dists/sid`,
    `(cat ${build}/DEBIAN/control; echo Filename: a.deb; echo Size: $(stat -c %s ${archive}/a.deb); echo SHA256: $(sha256sum < ${archive}/a.deb | cut -d' ' -f1)) > ${packages}/Packages`,
    `(echo Origin: a; echo Suite: sid; echo Codename: sid; echo Components: main; echo Architectures: ${arch}; echo Date: $(LC_ALL=C date -uR | sed 's/+0000/UTC/'); echo SHA256:; echo " $(sha256sum < ${packages}/Packages | cut -d' ' -f1) $(stat -c %s ${packages}/Packages) ${packages}/Packages") > Release`,
    `gpg --homedir ${home} --batch --quiet --passphrase '' --quick-generate-key a@example.com ed25519 sign`,
    `gpg --homedir ${home} --batch --export > ${key}`,
    `gpg --homedir ${home} --batch --clearsign -o InRelease Release`,
    `gpgconf --homedir ${home} --kill all`,
    `chmod -R a+rX ${directory}`
  ]
  await exec("sh", ["-ec", script.join("\n")])
  return { archive, key }
}

const hasGpg = existsSync("/usr/bin/gpg") && existsSync("/usr/bin/gpgconf")

describe("a nats-server", () => {
  it("comes from its project where that can be had, and is not installed by anybody", () => {
    assert.deepStrictEqual(
      defaultSources().map(({ name }) => name),
      ["the NATS project's release", "Debian's package"]
    )
  })
})

describe("Debian's package", () => {
  it.runIf(isDebian && hasGpg)(
    "is not taken from an archive with other keys, whatever apt's sources say of it",
    { timeout: 60_000 },
    async () => {
      const { archive, key } = await othersArchive()
      await mkdir(join(directory, "apt/sources.list.d"), { recursive: true })
      await writeFile(
        join(directory, "apt/sources.list"),
        `deb [trusted=yes signed-by=${key}] file:${archive} stable main\n`
      )
      const found = await Effect.runPromise(
        Effect.result(
          findNatsServer({
            env: { XDG_CACHE_HOME: join(directory, "cache") },
            sources: [debianPackage(join(directory, "apt"))],
            onProgress: () => {}
          })
        )
      )
      assert.strictEqual(found._tag, "Failure", JSON.stringify(found))
      assert.include(String(found._tag === "Failure" && found.failure.message), "not signed")
    }
  )

  // It downloads the package.
  it.runIf(isDebian && isLong)(
    "is obtained with apt, without touching apt's own state, and runs",
    { timeout: 180_000 },
    async () => {
      const state = () =>
        Promise.all(["/var/lib/apt/lists", "/var/cache/apt"].map((path) => readdir(path)))
      const before = await state()
      const lines: Array<string> = []
      const found = await Effect.runPromise(
        findNatsServer({
          env: { XDG_CACHE_HOME: join(directory, "cache") },
          sources: [debianPackage()],
          onProgress: (line) => lines.push(line)
        })
      )
      assert.strictEqual(found.from, "Debian's package")
      assert.include((await exec(found.path, ["--version"])).stdout, `v${found.version}`)
      assert.deepStrictEqual(await state(), before)
      assert.isTrue(lines.some((line) => line.includes("Packages")))
    }
  )
})
