import { assert, describe, it } from "@effect/vitest"
import { sign as githubSign } from "@octokit/webhooks-methods"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import Stripe from "stripe"
import type { Scheme } from "../../src/domain/settings/endpoint-table.ts"
import { generateSecret, makeSigner, publicKeyOf } from "../../src/endpoints/signing.ts"
import { verify } from "../../src/endpoints/verification.ts"

const nowMs = 1_800_000_000_000
const seconds = nowMs / 1_000
const body = Buffer.from('{"total":42,"name":"ä"}')
const tolerance = { toleranceSeconds: 300 }

const headersOf = (pairs: ReadonlyArray<string>): Record<string, string> =>
  Object.fromEntries(
    pairs.flatMap((name, n) => (n % 2 === 0 ? [[name.toLowerCase(), pairs[n + 1] ?? ""]] : []))
  )

const signedBy = (scheme: Exclude<Scheme, "none">) =>
  Effect.gen(function* () {
    const secret = yield* generateSecret(scheme)
    const signer = yield* makeSigner({ scheme, secrets: [{ value: secret, createdAt: 0 }] })
    return { secret, headers: headersOf(signer.sign("evt_1", "a.b", seconds, body, nowMs)) }
  })

const schemes = ["standard", "standard-ed25519", "stripe", "github"] as const

describe("what Petrel signs", () => {
  for (const scheme of schemes)
    it.effect(`is found good with its secret, and with no other (${scheme})`, () =>
      Effect.gen(function* () {
        const { headers, secret } = yield* signedBy(scheme)
        const check = (secrets: ReadonlyArray<string>, bytes = body, at = nowMs) =>
          verify({ headers, body: bytes }, { secrets, ...tolerance }, at)
        assert.deepStrictEqual(check([secret]), { result: "good", scheme })
        const other = yield* generateSecret(scheme)
        assert.deepInclude(check([other]), { result: "bad", scheme })
        assert.strictEqual(check([other, secret]).result, "good")
        assert.strictEqual(check([secret], Buffer.from("{}")).result, "bad")
        assert.deepStrictEqual(check([]), { result: "unchecked", scheme })
        const late = check([secret], body, nowMs + 400_000)
        if (scheme === "github") assert.strictEqual(late.result, "good")
        else assert.deepInclude(late, { why: "it was signed 400 s ago" })
      })
    )

  it.effect("is found good with the public key alone", () =>
    Effect.gen(function* () {
      const { headers, secret } = yield* signedBy("standard-ed25519")
      const secrets = [publicKeyOf(secret) ?? ""]
      assert.strictEqual(verify({ headers, body }, { secrets, ...tolerance }, nowMs).result, "good")
    })
  )
})

describe("what the receivers' libraries sign", () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`
  const good = (headers: Record<string, string>, key: string) =>
    verify({ headers, body }, { secrets: [key], ...tolerance }, nowMs).result

  it("is found good (Standard Webhooks)", () => {
    const signature = new Webhook(secret).sign("evt_1", new Date(nowMs), body.toString())
    assert.strictEqual(
      good(
        {
          "webhook-id": "evt_1",
          "webhook-timestamp": String(seconds),
          "webhook-signature": signature
        },
        secret
      ),
      "good"
    )
  })

  it("is found good (Stripe)", () => {
    const header = new Stripe("sk_test_x").webhooks.generateTestHeaderString({
      payload: body.toString(),
      secret: "whsec_abc12345",
      timestamp: seconds
    })
    assert.strictEqual(good({ "stripe-signature": header }, "whsec_abc12345"), "good")
  })

  it.effect("is found good (GitHub)", () =>
    Effect.gen(function* () {
      const header = yield* Effect.promise(() => githubSign("abc12345", body.toString()))
      assert.strictEqual(good({ "x-hub-signature-256": header }, "abc12345"), "good")
    })
  )
})

describe("a request", () => {
  it("without a signature is unsigned", () => {
    const headers = { "content-type": "application/json", "x-odd": "t=1" }
    assert.deepStrictEqual(
      verify({ headers, body }, { secrets: ["abc12345"], ...tolerance }, nowMs),
      { result: "unsigned" }
    )
  })

  it.each([
    { "webhook-signature": "v1,!!", "webhook-id": "x", "webhook-timestamp": "soon" },
    { "webhook-signature": "v1a,AAAA" },
    { "webhook-signature": "" },
    { "x-hub-signature-256": "sha256=zz" },
    { "any-header": "t=1,v1=00" }
  ])("with a broken signature is bad, not a defect (%o)", (headers) => {
    const secrets = [
      `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
      `whpk_${Buffer.alloc(32, 9).toString("base64")}`,
      "whpk_short"
    ]
    assert.strictEqual(verify({ headers, body }, { secrets, ...tolerance }, nowMs).result, "bad")
  })
})
