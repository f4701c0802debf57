import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ProviderEvent } from "../../src/providers/provider.ts"
import { json, request, type Sample, samples } from "./samples.ts"

const at = 1_795_000_000_000

/** What is found in the sample of each provider, without its bytes. */
const found: Readonly<Record<string, Omit<ProviderEvent, "body" | "contentType">>> = {
  "standard-webhooks": {
    id: "evt_1",
    type: "invoice.paid",
    at: Date.UTC(2026, 10, 25, 10)
  },
  petrel: { id: "evt_1", type: "invoice.paid" },
  stripe: { id: "evt_1", type: "invoice.paid", at, subject: "cus_1" },
  github: {
    id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    type: "issues.opened",
    subject: "acme/shop"
  },
  shopify: {
    id: "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
    type: "orders/create",
    at: Date.UTC(2026, 10, 25, 10, 0, 0, 123),
    subject: "acme.myshopify.com/gid://shopify/Order/1"
  },
  slack: { id: "Ev1", type: "app_mention", at, subject: "C1" },
  hmac: { id: "1", type: "a.b", at, subject: "7" }
}

const providerOf = ({ keys, make }: Sample) => make([keys[0].verifying])

describe("what requests carry", () => {
  for (const sample of samples)
    it(`is found as ${sample.name} documents it, with the bytes as they came`, async () => {
      const signed = await sample.sign({ body: sample.body, at, key: sample.keys[0] })
      assert.deepStrictEqual(providerOf(sample).read(signed), {
        ok: true,
        events: [
          { ...found[sample.name], body: sample.body, contentType: "application/json" }
        ] as ReadonlyArray<ProviderEvent>
      })
    })

  for (const sample of samples)
    it(`is read without an exception, whatever a request of ${sample.name} holds`, async () => {
      const one = providerOf(sample)
      const { headers } = await sample.sign({ body: sample.body, at, key: sample.keys[0] })
      const types = ["application/json", "application/x-www-form-urlencoded", "text/plain", ""]
      fc.assert(
        fc.property(
          fc.oneof(
            fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
            fc.json().map((text) => Buffer.from(text)),
            fc.webQueryParameters().map((text) => Buffer.from(text)),
            fc
              .array(fc.nat({ max: sample.body.length }), { maxLength: 2 })
              .map((cuts) => sample.body.subarray(...cuts.sort((a, b) => a - b)))
          ),
          fc.constantFrom(...types),
          fc.subarray(Object.keys(headers)),
          (body, type, kept) => {
            const some = Object.fromEntries(kept.map((name) => [name, headers[name] ?? ""]))
            const given = request({ ...some, "content-type": type }, body)
            const reading = one.read(given)
            if (!reading.ok) assert.match(reading.text, /^[A-Z][^\n]*\.$/)
            else for (const { type: word } of reading.events) assert.isNotEmpty(word)
            one.handshake?.(given, at)
          }
        ),
        { numRuns: 100 }
      )
    })
})

describe("what is not of the documented shape", () => {
  it("is said in one sentence", () => {
    for (const sample of samples) {
      if (["hmac", "petrel"].includes(sample.name)) continue
      const reading = providerOf(sample).read(
        request({ "x-github-event": "push", "x-shopify-topic": "a/b" }, Buffer.from("{"))
      )
      assert.match(reading.ok ? "" : reading.text, /^The body is not (a )?JSON/, sample.name)
    }
    const stripe = samples.find(({ name }) => name === "stripe")
    assert.deepStrictEqual(stripe && providerOf(stripe).read(request({}, json({ id: "evt_1" }))), {
      ok: false,
      text: "The request has no type: Stripe has it in `type`."
    })
  })
})
