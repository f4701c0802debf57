import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ReceivedRequest, VerificationProblem } from "../../src/providers/provider.ts"
import { providers } from "../../src/providers/providers.ts"
import { type Key, type Sample, signedRequest } from "./sample.ts"
import { samples } from "./samples.ts"

const now = 1_900_000_000_000
const minute = 60_000

const anyValue = fc.oneof(
  fc.string(),
  fc.base64String(),
  fc.base64String().map((text) => `v1,${text} v1a,${text}`),
  fc.array(fc.constantFrom(..."0123456789abcdef"), { maxLength: 140 }).map((all) => all.join("")),
  fc.nat().map(String),
  fc.constantFrom("t=1,v1=00", "ts=1;h1=00", "sha256=00", "v0=00")
)

const anyUrl = fc.oneof(
  fc.string(),
  fc.string().map((text) => `/in?bodySHA256=${text}`),
  fc.constantFrom("/in?%", "/in?a=%3A%zz", "//", "?", "/in?a=1#b")
)

const anyBody = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))

const withHeader = (
  request: ReceivedRequest,
  name: string,
  value: string | undefined
): ReceivedRequest => ({ ...request, headers: { ...request.headers, [name]: value } })

/** One sentence, which shows neither what signs nor what was signed. */
const isOneSentence = (text: string): boolean => /^[A-Z][^\n]{10,300}\.$/.test(text)

const secretsOf = ({ keys }: Sample) => keys.map(({ verifying }) => verifying)

const titled = samples.map((sample) => ({
  ...sample,
  title: [sample.name, ...(sample.variant === undefined ? [] : [sample.variant])].join(" ")
}))

describe.each(titled)("requests of $title", (sample) => {
  const { header, isBodySigned, isOneKeyOnly, isTimeSigned, keys, make, timeHeader } = sample
  const [key, other] = keys
  const one = make([key.verifying])
  const signed = (by: Key) => signedRequest(sample, now, by)

  const refused = async (
    request: ReceivedRequest,
    problem: VerificationProblem,
    at = now,
    by = one
  ) => {
    const result = await by.verify(request, at)
    if (result.ok) return assert.fail(`taken: ${problem}`)
    assert.strictEqual(result.problem, problem)
    assert.isTrue(isOneSentence(result.text), result.text)
    for (const secret of secretsOf(sample)) assert.notInclude(result.text, secret)
  }

  it("are taken, with the place of the secret that fits", async () => {
    const both = make(secretsOf(sample))
    for (const [place, signing] of (isOneKeyOnly ? [key] : keys).entries()) {
      const result = await both.verify(await signed(signing), now)
      assert.deepInclude(result, { ok: true, secret: place })
      assert.strictEqual(result.ok && result.at !== undefined, isTimeSigned)
    }
  })

  it("are refused if signed by another secret", async () => {
    await refused(await signed(other), "signature-mismatch")
  })

  it("are refused if any byte of the body has changed", async () => {
    if (!isBodySigned) return
    const good = await signed(key)
    const body = Buffer.from(good.body)
    for (let place = 0; place < body.length; place += 7) {
      const changed = Buffer.from(body)
      changed[place] = (changed[place] ?? 0) ^ 1
      const result = await one.verify({ ...good, body: changed }, now)
      assert.isFalse(result.ok, `byte ${place}`)
    }
    const longer = { ...good, body: Buffer.concat([body, Buffer.from(" ")]) }
    assert.isFalse((await one.verify(longer, now)).ok)
    assert.isFalse((await one.verify({ ...good, body: body.subarray(1) }, now)).ok)
  })

  it("are refused if a character of the signature has changed", async () => {
    if (header === undefined) return
    const good = await signed(key)
    const text = good.headers[header] ?? ""
    // Each character of a short one; what a long one costs is the verification.
    for (let place = 0; place < text.length; place += Math.ceil(text.length / 60)) {
      const changed = `${text.slice(0, place)}${text[place] === "0" ? "1" : "0"}${text.slice(place + 1)}`
      assert.isFalse((await one.verify(withHeader(good, header, changed), now)).ok, changed)
    }
  })

  it("are refused without the signature, with a malformed and with a huge one", async () => {
    if (header === undefined) return
    const good = await signed(key)
    await refused(withHeader(good, header, undefined), "signature-missing")
    await refused(withHeader(good, header, ""), "signature-missing")
    for (const text of ["x", "=", "v1,", "💥", "t=1,v1=zz"]) {
      const result = await one.verify(withHeader(good, header, text), now)
      assert.isFalse(result.ok)
      assert.isTrue(isOneSentence(result.ok ? "" : result.text), result.ok ? "" : result.text)
    }
    const huge = `${good.headers[header]}${"a".repeat(100_000)}`
    await refused(withHeader(good, header, huge), "signature-malformed")
  })

  it("are refused without an exception, whatever their headers, URL and body hold", async () => {
    const good = await signed(key)
    const names = [...Object.keys(good.headers), "webhook-signature", "svix-signature"]
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom(...names), anyValue),
        anyUrl,
        anyBody,
        async (headers, url, body) => {
          const given = { ...good, headers: { ...good.headers, ...headers }, url, body }
          // Not even a good signature is of these bytes, where bytes are signed.
          const result = await one.verify(given, now)
          if (isBodySigned) assert.isFalse(result.ok)
        }
      ),
      { numRuns: 60 }
    )
  })

  it("are refused if too old or from the future, and taken at the bounds", async () => {
    if (!isTimeSigned) return
    const usual = providers.get(sample.name)?.toleranceMs
    const toleranceMs = usual ?? 90_000
    const strict = make([key.verifying], toleranceMs)
    const good = await signed(key)
    for (const off of [toleranceMs, -toleranceMs])
      assert.deepInclude(await strict.verify(good, now + off), { ok: true, at: now })
    const justOver = await strict.verify(good, now + toleranceMs + 1_000)
    const [, ago, allowed] =
      /signed (.+) ago, but only (.+) are/.exec(justOver.ok ? "" : justOver.text) ?? []
    assert.notStrictEqual(ago, allowed)
    const year = 365 * 24 * 60 * minute
    for (const off of [toleranceMs + 1_000, year]) {
      await refused(good, "timestamp-too-old", now + off, strict)
      await refused(good, "timestamp-too-new", now - off, strict)
      const result = await one.verify(good, now + off)
      assert.strictEqual(result.ok, usual === undefined)
    }
  })

  it("are refused without their time, with another and with a malformed one", async () => {
    if (timeHeader === undefined) return
    const good = await signed(key)
    await refused(withHeader(good, timeHeader, undefined), "timestamp-missing")
    const later = String(Number(good.headers[timeHeader]) + 1)
    await refused(withHeader(good, timeHeader, later), "signature-mismatch")
    for (const text of ["x", "-1", "1e9", "1.5", "Infinity", "9".repeat(15)])
      await refused(withHeader(good, timeHeader, text), "timestamp-malformed")
    await refused(withHeader(good, timeHeader, "9".repeat(10_000)), "timestamp-malformed")
  })
})
