import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "petrel-cluster-"))
  cpSync(join(root, "deploy/cluster"), join(folder, "deploy/cluster"), { recursive: true })
  cpSync(join(root, "nats.conf"), join(folder, "nats.conf"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Prepares a cluster whose three servers listen there. */
const prepare = (listen: string) => {
  for (const name of ["a", "b", "c"]) {
    const file = join(folder, "deploy/cluster", `${name}.conf`)
    const text = readFileSync(file, "utf8")
    writeFileSync(file, text.replace(/^listen: .*$/m, `listen: "${listen}"`))
  }
  const script = join(folder, "deploy/cluster/prepare.sh")
  return spawnSync("sh", [script, join(folder, "to")], { encoding: "utf8" })
}

describe("the files of a cluster", () => {
  it.each([
    // Clients on Node compare an address with the name localhost.
    ["10.0.0.7:4333", ["DNS:a", "IP Address:10.0.0.7", "DNS:localhost"]],
    ["broker1.internal:4222", ["DNS:a", "DNS:broker1.internal"]]
  ])("have certificates for where the servers listen: %s", (listen, names) => {
    const { status, stderr } = prepare(listen)
    assert.strictEqual(status, 0, stderr)
    const certificate = join(folder, "to/tls/a.crt")
    const text = execFileSync(
      "openssl",
      ["x509", "-in", certificate, "-noout", "-ext", "subjectAltName"],
      { encoding: "utf8" }
    )
    assert.deepStrictEqual(text.split("\n")[1]?.trim().split(", "), names)
    for (const role of ["operator", "worker", "console", "ingest", "outbox", "backup", "acme"]) {
      const login = readFileSync(join(folder, `to/${role}.env`), "utf8")
      assert.include(login, `tls://${role}:`)
      assert.include(login, `@${listen},${listen},${listen}'`)
    }
  })

  it("are not made where a server listens nowhere, and it says so", () => {
    const { status, stderr } = prepare("somewhere")
    assert.strictEqual(status, 1)
    assert.strictEqual(stderr, 'a.conf has no line such as listen: "10.0.0.1:4222"\n')
  })
})
