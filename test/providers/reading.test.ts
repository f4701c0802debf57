import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ProviderEvent } from "../../src/providers/provider.ts"
import { json, request, type Sample, signedRequest } from "./sample.ts"
import { samples } from "./samples.ts"

const at = 1_795_000_000_000
const wellBefore = Date.UTC(2026, 10, 25, 10)

/** What is found in the sample of each provider, without its bytes. */
const found: Readonly<Record<string, Omit<ProviderEvent, "body" | "contentType">>> = {
  "standard-webhooks": {
    id: "evt_1",
    type: "invoice.paid",
    at: wellBefore
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
    at: wellBefore + 123,
    subject: "acme.myshopify.com/gid://shopify/Order/1"
  },
  slack: { id: "Ev1", type: "app_mention", at, subject: "C1" },
  hmac: { id: "1", type: "a.b", at, subject: "7" },
  paddle: { id: "evt_1", type: "transaction.paid", at: wellBefore, subject: "ctm_1" },
  square: { id: "evt_1", type: "payment.updated", at: wellBefore, subject: "pay_1" },
  linear: {
    id: "234d1a4e-b617-4388-90fe-adc3633d6b72",
    type: "Issue.create",
    at: wellBefore,
    subject: "iss_1"
  },
  zoom: { type: "meeting.started", at: at + 123, subject: "4444AAAiAAAAAiAiAiiAii==" },
  hubspot: {
    id: `62515-12345-123-${at}-1`,
    type: "contact.creation",
    at,
    subject: "123"
  },
  mailgun: {
    id: "Ase7i2zsRYeDXztHGENqRA",
    type: "opened",
    at: at + 123,
    subject: "20130503182626.18666.16540@example.com"
  },
  meta: { id: "wamid.1", type: "whatsapp_business_account.messages", at, subject: "biz_1" },
  x: { id: "1000000000000000001", type: "tweet_create_events", at, subject: "2244994945" },
  gitlab: { id: "f5e5f430", type: "merge_request.open", at: wellBefore, subject: "acme/shop" },
  "gitlab by secret token": { id: "f5e5f431", type: "push", subject: "acme/shop" },
  twilio: { id: "idem_1", type: "message.delivered", subject: "SM1" },
  discord: {
    type: "APPLICATION_AUTHORIZED",
    at: wellBefore + 123,
    subject: "80351110224678912"
  },
  sendgrid: { id: "sg_1", type: "delivered", at, subject: "14c5d75ce93.dfd.64b469" },
  paypal: {
    id: "WH-1",
    type: "PAYMENT.SALE.COMPLETED",
    at: wellBefore,
    subject: "sale_1"
  }
}

const nameOf = ({ name, variant }: Sample): string =>
  variant === undefined ? name : `${name} ${variant}`

/** Whether the events are the items of an array. */
const isBatch = ({ name }: Sample): boolean => ["hubspot", "meta", "sendgrid"].includes(name)

/** Returns the text of the only item. */
const inner = (text: string): string => text.replace(/^[^[]*\[/, "").replace(/\]}?$/, "")

const anyBody = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.json({ maxDepth: 3 }).map((text) => Buffer.from(text)),
  fc
    .array(fc.tuple(fc.constantFrom("payload", "command", "event", "signature"), fc.string()))
    .map((pairs) => Buffer.from(new URLSearchParams(pairs).toString()))
)

const anyType = fc.constantFrom(
  ...["application/json", "application/x-www-form-urlencoded", "text/plain", ""]
)

const providerOf = ({ keys, make }: Sample) => make([keys[0].verifying])

describe("what requests carry", () => {
  for (const sample of samples)
    it(`is found as ${nameOf(sample)} documents it, with the bytes as they came`, async () => {
      const signed = await signedRequest(sample, at, sample.keys[0])
      const reading = providerOf(sample).read(signed)
      assert.isTrue(reading.ok)
      const [event, ...others] = reading.ok ? reading.events : []
      assert.lengthOf(others, 0)
      const { body, contentType, ...rest } = event ?? assert.fail()
      assert.deepStrictEqual(rest, found[nameOf(sample)])
      assert.strictEqual(contentType, signed.headers["content-type"])
      const whole = Buffer.from(signed.body).toString()
      assert.strictEqual(Buffer.from(body).toString(), isBatch(sample) ? inner(whole) : whole)
    })

  for (const sample of samples)
    it(`is read without an exception, whatever a request of ${nameOf(sample)} holds`, async () => {
      const one = providerOf(sample)
      const { headers } = await signedRequest(sample, at, sample.keys[0])
      const broken = fc
        .array(fc.nat({ max: sample.body.length }), { maxLength: 2 })
        .map((cuts) => sample.body.subarray(...cuts.sort((a, b) => a - b)))
      fc.assert(
        fc.property(
          fc.oneof(anyBody, broken),
          anyType,
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
