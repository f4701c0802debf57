import { createPrivateKey } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Result } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { certificateWarning, readTls } from "../../../src/cli/flags/listen-flags.ts"
import { selfSigned } from "../../kit/receiver.ts"

const folder = mkdtempSync(join(tmpdir(), "petrel-tls-flags-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Writes a file and returns its path. */
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

describe("--tls-cert and --tls-key", () => {
  const [own, other] = [selfSigned("IP:127.0.0.1"), selfSigned("IP:127.0.0.1")]
  const [cert, key] = [file("own.crt", own.cert), file("own.key", own.key)]
  const problem = (...given: readonly [string, string]) => {
    const read = readTls(...given)
    return Result.isFailure(read) ? read.failure.join("; ") : undefined
  }

  it("are taken where they belong together", () => {
    assert.deepStrictEqual(readTls(cert, key), Result.succeed(own))
    const chain = file("chain.crt", `${own.cert}\n${other.cert}`)
    assert.isUndefined(problem(chain, key))
  })

  it("are refused in a sentence with the file where no server can use them", () => {
    assert.match(`${problem(key, cert)}`, /own\.key has no certificate in PEM$/)
    assert.match(`${problem(file("empty.crt", ""), key)}`, /empty\.crt has no certificate in PEM$/)
    assert.match(`${problem(cert, cert)}`, /own\.crt has no private key in PEM$/)
    const encrypted = createPrivateKey(own.key).export({
      ...{ type: "pkcs8", format: "pem", cipher: "aes256", passphrase: "secret" }
    })
    assert.match(`${problem(cert, file("enc.key", `${encrypted}`))}`, /enc\.key is encrypted: give/)
    const wrongOrder = file("order.crt", `${other.cert}\n${own.cert}`)
    assert.match(`${problem(wrongOrder, key)}`, /own\.key is not the key of the first .*order\.crt/)
    const broken = own.cert.replace(/\n.*\n/, "\n!\n")
    const chain = file("broken.crt", `${own.cert}\n${broken}`)
    assert.match(`${problem(chain, key)}`, /broken\.crt has a certificate that cannot be read/)
  })

  it("have a warning where clients refuse the certificate, or will soon", () => {
    const { cert } = selfSigned("IP:127.0.0.1")
    const [hour, now] = [3_600_000, Date.now()]
    const at = (hours: number) => certificateWarning(cert, now + hours * hour)
    assert.match(`${at(-1)}`, /valid from \d{4}-\S+Z: until then clients refuse it$/)
    assert.isUndefined(at(1), "it lasts for two days, and is in its first")
    assert.match(`${at(40)}`, /ends at \d{4}-\S+Z: renew it and start again before$/)
    assert.match(`${at(50)}`, /ended at \d{4}-\S+Z: clients refuse it/)
  })
})
