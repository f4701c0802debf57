import { execFile } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, beforeEach } from "vitest"
import { findNatsServer } from "../../src/broker/embedded/binary.ts"
import { findMirror } from "../../src/broker/embedded/debian.ts"

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
    assert.deepStrictEqual(findMirror(files, "trixie"), {
      uri: "http://mirror.example/debian",
      signedBy: key
    })
  })

  it("keeps a key that is written into the source", () => {
    const files = deb822(`Types: deb
URIs: https://mirror.example/debian
Suites: sid
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS
 -----END PGP PUBLIC KEY BLOCK-----
`)
    assert.strictEqual(
      findMirror(files, undefined)?.signedBy,
      "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS\n -----END PGP PUBLIC KEY BLOCK-----"
    )
  })

  it("is not one that is disabled, for sources only, or for another distribution", () => {
    const stanza = (more: string) =>
      `Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n${more}`
    assert.isUndefined(findMirror(deb822(stanza("Enabled: no")), "trixie"))
    assert.isUndefined(
      findMirror(deb822(stanza("").replace("Types: deb", "Types: deb-src")), "trixie")
    )
    assert.isUndefined(findMirror(deb822(stanza("").replace("main", "stable")), "trixie"))
    assert.isUndefined(findMirror(deb822(stanza("")), "bookworm"))
  })

  it("is read from one-line sources with and without options", () => {
    const list = (text: string) => [{ name: "sources.list", text }]
    assert.deepStrictEqual(
      findMirror(
        list(`# deb http://commented.example/debian bookworm main
deb cdrom:[Debian GNU/Linux 12]/ bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=${key}] http://mirror.example/debian bookworm main non-free # ours`),
        "bookworm"
      ),
      { uri: "http://mirror.example/debian", signedBy: key }
    )
    assert.deepStrictEqual(findMirror(list("deb http://mirror.example/debian stable main"), "x"), {
      uri: "http://mirror.example/debian"
    })
  })
})

const isDebian =
  existsSync("/usr/bin/apt-get") &&
  existsSync("/etc/os-release") &&
  /^ID="?debian"?$/m.test(readFileSync("/etc/os-release", "utf8"))

describe("Debian's package", () => {
  it.runIf(isDebian)(
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
