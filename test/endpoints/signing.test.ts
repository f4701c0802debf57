import { createHmac, createPublicKey, verify as verifySignature } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { verify as verifyGithub } from "@octokit/webhooks-methods"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import Stripe from "stripe"
import type { HeaderNames } from "../../src/domain/header-names.ts"
import type { Scheme } from "../../src/domain/settings/endpoint-table.ts"
import {
  generateSecret,
  InvalidSecret,
  makeSigner,
  publicKeyOf,
  type Signing,
  secretProblem,
  signatureHeaderOf
} from "../../src/endpoints/signing.ts"

const schemes = ["standard", "standard-ed25519", "stripe", "github"] as const
const id = "evt_acme-17"
const type = "invoice.paid"
const identity = ["webhook-id", "webhook-event-type", "webhook-timestamp"]
const text = JSON.stringify({ type: "invoice.paid", data: { name: "Zoë — 支払い", amount: 12 } })
const body = Buffer.from(text)
const binary = Buffer.from([0, 255, 0xc3, 0x28, 13, 10, 0x80, 0])

/** The receivers' libraries compare the timestamp with the real clock. */
const nowMs = Date.now()
const seconds = Math.floor(nowMs / 1000)

const secret = (value: string, until?: number) => ({
  value,
  createdAt: nowMs - 1000,
  ...(until === undefined ? {} : { until })
})

const headersOf = (list: ReadonlyArray<string>): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (let i = 0; i < list.length; i += 2) headers[list[i] ?? ""] = list[i + 1] ?? ""
  return headers
}

const signed = (signing: Signing, what: Uint8Array = body, at = nowMs) =>
  Effect.map(makeSigner(signing), (signer) => headersOf(signer.sign(id, type, seconds, what, at)))

/** As a receiver would, who has the `whpk_` text, the headers and the bytes. */
const verifiesV1a = (publicKey: string, headers: Record<string, string>, what: Uint8Array) => {
  const key = createPublicKey({
    format: "jwk",
    key: {
      kty: "OKP",
      crv: "Ed25519",
      x: Buffer.from(publicKey.replace(/^whpk_/, ""), "base64").toString("base64url")
    }
  })
  const content = Buffer.concat([
    Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`),
    what
  ])
  return (headers["webhook-signature"] ?? "")
    .split(" ")
    .some((entry) =>
      entry.startsWith("v1a,")
        ? verifySignature(null, content, key, Buffer.from(entry.slice(4), "base64"))
        : false
    )
}

describe("every scheme", () => {
  it.effect.each([...schemes, "none"] as const)("%s sends id, type and timestamp", (scheme) =>
    Effect.gen(function* () {
      const secrets = scheme === "none" ? [] : [secret(yield* generateSecret(scheme))]
      const headers = yield* signed({ scheme, secrets })
      assert.strictEqual(headers["webhook-id"], id)
      assert.strictEqual(headers["webhook-event-type"], type)
      assert.strictEqual(headers["webhook-timestamp"], String(seconds))
    })
  )

  it.effect.each([...schemes, "none"] as const)(
    "%s sends them by names of the endpoint",
    (scheme) =>
      Effect.gen(function* () {
        const secrets = scheme === "none" ? [] : [secret(yield* generateSecret(scheme))]
        const usual = yield* signed({ scheme, secrets })
        const headerNames = { id: "X-Event-Id", type: "x-topic" }
        const headers = yield* signed({ scheme, secrets, headerNames })
        const { "X-Event-Id": sentId, "x-topic": sentType, ...others } = headers
        const { "webhook-id": usualId, "webhook-event-type": usualType, ...same } = usual
        assert.deepStrictEqual([sentId, sentType], [usualId, usualType])
        assert.deepStrictEqual(others, same)
        const when = yield* signed({ scheme, secrets, headerNames: { timestamp: "x-sent-at" } })
        assert.strictEqual(when["x-sent-at"], String(seconds))
        assert.notProperty(when, "webhook-timestamp")
      })
  )

  it.effect.each([...schemes, "none"] as const)("%s says where its signature is", (scheme) =>
    Effect.gen(function* () {
      const secrets = scheme === "none" ? [] : [secret(yield* generateSecret(scheme))]
      const of = (all: Signing["secrets"]) =>
        Effect.map(makeSigner({ scheme, secrets: all }), (signer) => {
          const headers = signer.sign(id, type, seconds, body, nowMs)
          return signer.signatureIn(headers)
        })
      const name = signatureHeaderOf({ scheme })
      const headers = yield* signed({ scheme, secrets })
      assert.strictEqual(name === undefined, scheme === "none")
      assert.strictEqual(yield* of(secrets), name === undefined ? undefined : headers[name])
      assert.isUndefined(yield* of(secrets.map((one) => ({ ...one, until: nowMs }))))
    })
  )

  it.effect("none sends nothing else, even where old secrets are still configured", () =>
    Effect.gen(function* () {
      const headers = yield* signed({ scheme: "none", secrets: [secret("left over")] })
      assert.deepStrictEqual(Object.keys(headers), identity)
    })
  )

  it.effect.each(schemes)("%s makes secrets that it takes itself, never the same twice", (scheme) =>
    Effect.gen(function* () {
      const first = yield* generateSecret(scheme)
      assert.isUndefined(secretProblem(scheme, first))
      assert.notStrictEqual(first, yield* generateSecret(scheme))
    })
  )

  it.effect.each(schemes)("%s does not sign with a secret that has run out", (scheme) =>
    Effect.gen(function* () {
      const old = yield* generateSecret(scheme)
      const recent = yield* generateSecret(scheme)
      const both = { scheme, secrets: [secret(recent), secret(old, nowMs)] }
      assert.deepStrictEqual(
        yield* signed(both),
        yield* signed({ scheme, secrets: [secret(recent)] })
      )
      const gone = yield* signed({ scheme, secrets: [secret(old, nowMs)] })
      const github = scheme === "github" ? ["x-github-event", "x-github-delivery"] : []
      assert.deepStrictEqual(Object.keys(gone), [...identity, ...github])
    })
  )

  it.effect.each(schemes)("%s gives each attempt an array of its own", (scheme) =>
    Effect.gen(function* () {
      const signer = yield* makeSigner({ scheme, secrets: [secret(yield* generateSecret(scheme))] })
      signer.sign(id, type, seconds, body, nowMs).push("x", "y")
      assert.notInclude(signer.sign(id, type, seconds, body, nowMs), "x")
    })
  )
})

describe("standard", () => {
  it.effect("is verified by the Standard Webhooks library", () =>
    Effect.gen(function* () {
      const value = yield* generateSecret("standard")
      const headers = yield* signed({ scheme: "standard", secrets: [secret(value)] })
      assert.deepStrictEqual(new Webhook(value).verify(text, headers), JSON.parse(text))
      assert.throws(() => new Webhook(value).verify(`${text} `, headers))
    })
  )

  it.effect("is verified by the library where only the type has another name", () =>
    Effect.gen(function* () {
      const value = yield* generateSecret("standard")
      const of = (headerNames: HeaderNames) =>
        signed({ scheme: "standard", secrets: [secret(value)], headerNames })
      new Webhook(value).verify(text, yield* of({ type: "x-topic" }))
      const renamed = yield* of({ id: "x-event-id" })
      assert.throws(() => new Webhook(value).verify(text, renamed), /Missing required headers/)
      new Webhook(value).verify(text, { ...renamed, "webhook-id": renamed["x-event-id"] ?? "" })
    })
  )

  it.effect("is verified with the old and the new secret while they rotate", () =>
    Effect.gen(function* () {
      const recent = yield* generateSecret("standard")
      const old = yield* generateSecret("standard")
      const headers = yield* signed({
        scheme: "standard",
        secrets: [secret(recent), secret(old, nowMs + 1)]
      })
      for (const value of [recent, old]) new Webhook(value).verify(text, headers)
      const signatures = headers["webhook-signature"]?.split(" ") ?? []
      assert.strictEqual(signatures.length, 2)
      new Webhook(recent).verify(text, { ...headers, "webhook-signature": signatures[0] ?? "" })
    })
  )

  it.effect("signs an empty body as the library does", () =>
    Effect.gen(function* () {
      const value = yield* generateSecret("standard")
      const headers = yield* signed(
        { scheme: "standard", secrets: [secret(value)] },
        new Uint8Array()
      )
      new Webhook(value).verify("", headers)
    })
  )

  it.effect("signs bytes that are no text as they are", () =>
    Effect.gen(function* () {
      const key = Buffer.alloc(24, 7)
      const value = `whsec_${key.toString("base64")}`
      const headers = yield* signed({ scheme: "standard", secrets: [secret(value)] }, binary)
      const content = Buffer.concat([Buffer.from(`${id}.${seconds}.`), binary])
      assert.strictEqual(
        headers["webhook-signature"],
        `v1,${createHmac("sha256", key).update(content).digest("base64")}`
      )
    })
  )
})

describe("standard-ed25519", () => {
  it.effect("is verified with the public key that receivers are given", () =>
    Effect.gen(function* () {
      const value = yield* generateSecret("standard-ed25519")
      const publicKey = publicKeyOf(value) ?? ""
      assert.match(publicKey, /^whpk_[A-Za-z0-9+/]{43}=$/)
      for (const what of [body, binary, new Uint8Array()]) {
        const headers = yield* signed(
          { scheme: "standard-ed25519", secrets: [secret(value)] },
          what
        )
        assert.isTrue(verifiesV1a(publicKey, headers, what))
        assert.isFalse(verifiesV1a(publicKey, headers, Buffer.concat([what, Buffer.from(" ")])))
      }
    })
  )

  it.effect("takes seed and public key together for the same secret as the seed alone", () =>
    Effect.gen(function* () {
      const seed = yield* generateSecret("standard-ed25519")
      const publicKey = publicKeyOf(seed) ?? ""
      const both = `whsk_${Buffer.concat([
        Buffer.from(seed.slice(5), "base64"),
        Buffer.from(publicKey.slice(5), "base64")
      ]).toString("base64")}`
      assert.strictEqual(publicKeyOf(both), publicKey)
      const headers = yield* signed({ scheme: "standard-ed25519", secrets: [secret(both)] })
      assert.isTrue(verifiesV1a(publicKey, headers, body))
    })
  )

  it("derives the public key that RFC 8032 gives for its first test vector", () => {
    const seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    const known = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert.strictEqual(
      publicKeyOf(`whsk_${Buffer.from(seed, "hex").toString("base64")}`),
      `whpk_${Buffer.from(known, "hex").toString("base64")}`
    )
  })

  it.effect("is verified with the old and the new public key while they rotate", () =>
    Effect.gen(function* () {
      const recent = yield* generateSecret("standard-ed25519")
      const old = yield* generateSecret("standard-ed25519")
      const headers = yield* signed({
        scheme: "standard-ed25519",
        secrets: [secret(recent), secret(old, nowMs + 1)]
      })
      for (const value of [recent, old])
        assert.isTrue(verifiesV1a(publicKeyOf(value) ?? "", headers, body))
    })
  )

  it("shows no public key for a secret of another kind", () => {
    assert.isUndefined(publicKeyOf(`whsec_${Buffer.alloc(32).toString("base64")}`))
    assert.isUndefined(publicKeyOf("whsk_AAAA"))
  })
})

describe("stripe", () => {
  const { webhooks } = Stripe
  const verified = (value: string, header: string | undefined, what: string | Buffer = text) =>
    webhooks.constructEvent(what, header ?? "", value, 300)

  it.effect("is verified by Stripe's library", () =>
    Effect.gen(function* () {
      const value = yield* generateSecret("stripe")
      const headers = yield* signed({ scheme: "stripe", secrets: [secret(value)] })
      assert.deepStrictEqual<unknown>(
        verified(value, headers["petrel-signature"]),
        JSON.parse(text)
      )
      assert.throws(() => verified(`${value}x`, headers["petrel-signature"]))
      assert.throws(() => verified(value, headers["petrel-signature"], `${text} `))
      const names = { id: "x-id", type: "x-type", timestamp: "x-at" }
      const renamed = yield* signed({
        scheme: "stripe",
        secrets: [secret(value)],
        headerNames: names
      })
      verified(value, renamed["petrel-signature"])
    })
  )

  it.effect("is verified with the old and the new secret while they rotate", () =>
    Effect.gen(function* () {
      const recent = yield* generateSecret("stripe")
      const old = yield* generateSecret("stripe")
      const headers = yield* signed({
        scheme: "stripe",
        secrets: [secret(recent), secret(old, nowMs + 1)]
      })
      for (const value of [recent, old]) verified(value, headers["petrel-signature"])
    })
  )

  it.effect("goes into the header that is configured", () =>
    Effect.gen(function* () {
      const value = yield* generateSecret("stripe")
      const headers = yield* signed({
        scheme: "stripe",
        secrets: [secret(value)],
        signatureHeader: "stripe-signature"
      })
      verified(value, headers["stripe-signature"])
      assert.notProperty(headers, "petrel-signature")
    })
  )
})

describe("github", () => {
  it.effect("is verified by GitHub's library", () =>
    Effect.gen(function* () {
      const value = yield* generateSecret("github")
      const headers = yield* signed({ scheme: "github", secrets: [secret(value)] })
      const signature = headers["x-hub-signature-256"] ?? ""
      assert.isTrue(yield* Effect.promise(() => verifyGithub(value, text, signature)))
      assert.isFalse(yield* Effect.promise(() => verifyGithub(value, `${text} `, signature)))
    })
  )

  it.effect("names event and delivery as GitHub does, whatever the endpoint calls them", () =>
    Effect.gen(function* () {
      const secrets = [secret(yield* generateSecret("github"))]
      for (const headerNames of [{}, { id: "x-id", type: "x-type", timestamp: "x-at" }]) {
        const headers = yield* signed({ scheme: "github", secrets, headerNames })
        assert.deepInclude(headers, { "x-github-event": type, "x-github-delivery": id })
      }
      const other = yield* signed({ scheme: "none", secrets })
      assert.notProperty(other, "x-github-event")
    })
  )

  it.effect("carries the newest secret's signature while they rotate", () =>
    Effect.gen(function* () {
      const recent = yield* generateSecret("github")
      const old = yield* generateSecret("github")
      const headers = yield* signed({
        scheme: "github",
        secrets: [secret(recent), secret(old, nowMs + 1)]
      })
      const signature = headers["x-hub-signature-256"] ?? ""
      assert.isTrue(yield* Effect.promise(() => verifyGithub(recent, text, signature)))
      assert.isFalse(yield* Effect.promise(() => verifyGithub(old, text, signature)))
    })
  )
})

describe("what is wrong with a secret", () => {
  const base64 = (bytes: number) => Buffer.alloc(bytes, 1).toString("base64")
  const bad: ReadonlyArray<readonly [Scheme, string, RegExp]> = [
    ["standard", base64(32), /must be whsec_ followed by base64/],
    ["standard", `whsec_${base64(23)}`, /24 to 64 bytes, not 23/],
    ["standard", `whsec_${base64(65)}`, /24 to 64 bytes, not 65/],
    ["standard", "whsec_this is not base64, and long enough", /followed by base64/],
    ["standard", `whsec_${base64(32)}\n`, /followed by base64/],
    ["standard-ed25519", `whsec_${base64(32)}`, /must be whsk_ followed by base64/],
    ["standard-ed25519", `whsk_${base64(33)}`, /32 bytes \(the seed\) or 64.*not 33/],
    ["standard-ed25519", `whsk_${base64(64)}`, /not the public key of its first half/],
    ["stripe", "short", /8 to 256 ASCII characters without spaces/],
    ["github", "two words here", /8 to 256 ASCII characters without spaces/],
    ["github", "x".repeat(257), /8 to 256/],
    ["none", "anything at all", /takes no secret/]
  ]

  it.each(bad)("is said for %s: %j", (scheme, value, sentence) => {
    assert.match(secretProblem(scheme, value) ?? "", sentence)
  })

  it.effect("fails the signer, in words without the secret", () =>
    Effect.gen(function* () {
      const value = "whsec_c2hvcnQ="
      const failed = yield* Effect.flip(
        makeSigner({ scheme: "standard", secrets: [secret(value)] })
      )
      assert.instanceOf(failed, InvalidSecret)
      assert.match(failed.message, /24 to 64 bytes/)
      assert.notInclude(JSON.stringify(failed), value.slice(6))
    })
  )

  it.each([24, 64])("is nothing at %i bytes", (bytes) => {
    assert.isUndefined(secretProblem("standard", `whsec_${base64(bytes)}`))
  })
})
