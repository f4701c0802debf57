import { createHmac, randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { hmac, hmacKey } from "../../src/endpoints/hmac.ts"

const expected = (
  secret: Uint8Array,
  prefix: string,
  body: Uint8Array,
  encoding: "base64" | "hex"
) => createHmac("sha256", secret).update(prefix).update(body).digest(encoding)

describe("an HMAC", () => {
  it("is that of node:crypto, for keys shorter and longer than a block, and any body", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.stringMatching(/^[\x21-\x7e]{0,300}$/),
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom("base64", "hex"),
        (secret, prefix, body, encoding) => {
          assert.strictEqual(
            hmac(hmacKey(secret), prefix, body, encoding),
            expected(secret, prefix, body, encoding)
          )
        }
      )
    )
  })

  it.each([63, 64, 65])("is that of node:crypto for a key of %i bytes", (bytes) => {
    const secret = randomBytes(bytes)
    const body = randomBytes(1000)
    assert.strictEqual(
      hmac(hmacKey(secret), "a.", body, "hex"),
      expected(secret, "a.", body, "hex")
    )
  })

  it("is of its own message, after a longer one, between other keys", () => {
    const keys = [randomBytes(32), randomBytes(32)]
    const bodies = [randomBytes(10), randomBytes(100_000), randomBytes(0), randomBytes(4096)]
    for (const body of bodies)
      for (const secret of keys)
        assert.strictEqual(
          hmac(hmacKey(secret), "id.1.", body, "base64"),
          expected(secret, "id.1.", body, "base64")
        )
  })
})
