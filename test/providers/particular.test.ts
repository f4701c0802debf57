/* What only one provider does. */
import { createHash, X509Certificate } from "node:crypto"
import { rootCertificates } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import twilioWebhooks from "twilio/lib/webhooks/webhooks.js"
import { chainProblem } from "../../src/providers/certificates.ts"
import { github } from "../../src/providers/github.ts"
import { gitlab } from "../../src/providers/gitlab.ts"
import { hubspot } from "../../src/providers/hubspot.ts"
import { mailgun } from "../../src/providers/mailgun.ts"
import { meta } from "../../src/providers/meta.ts"
import { paypal } from "../../src/providers/paypal.ts"
import type { ReceivedRequest } from "../../src/providers/provider.ts"
import { sendgrid } from "../../src/providers/sendgrid.ts"
import { shopify } from "../../src/providers/shopify.ts"
import { slack } from "../../src/providers/slack.ts"
import { square } from "../../src/providers/square.ts"
import { standardWebhooks } from "../../src/providers/standard-webhooks.ts"
import { stripe } from "../../src/providers/stripe.ts"
import { twilio } from "../../src/providers/twilio.ts"
import { testCertificates } from "./certificates.ts"
import { hmac, json, request, signedRequest, whsec } from "./sample.ts"
import { samples } from "./samples.ts"

const now = 1_900_000_000_000
const form = { "content-type": "application/x-www-form-urlencoded" }
const publicUrl = "https://hooks.example.com/in"

const sampleOf = (name: string, variant?: string) =>
  samples.find((one) => one.name === name && one.variant === variant) ?? assert.fail(name)

const typesOf = (reading: ReturnType<ReturnType<typeof stripe>["read"]>) =>
  reading.ok ? reading.events.map(({ type }) => type) : reading.text

describe("Standard Webhooks", () => {
  const [{ signing: secret }] = sampleOf("standard-webhooks").keys
  const binary = Buffer.from([0xff, 0xfe, 0, 1, 0x80])
  const bytes = Buffer.from(secret.slice("whsec_".length), "base64")
  const signedBy = (prefix: string, body: Buffer, signature?: string): ReceivedRequest =>
    request(
      {
        "content-type": "application/octet-stream",
        [`${prefix}-id`]: "evt_1",
        [`${prefix}-timestamp`]: String(now / 1_000),
        [`${prefix}-signature`]:
          signature ?? `v1,${hmac(bytes, `evt_1.${now / 1_000}.`, body).digest("base64")}`
      },
      body
    )

  it("verifies and reads a body of any bytes, and the headers of Svix", async () => {
    const one = standardWebhooks({ secrets: [secret] })
    for (const prefix of ["webhook", "svix"]) {
      const signed = signedBy(prefix, binary)
      assert.deepInclude(await one.verify(signed, now), { ok: true })
      const reading = one.read(signed)
      assert.deepStrictEqual(reading.ok && reading.events, [
        { id: "evt_1", type: "webhook", body: binary, contentType: "application/octet-stream" }
      ])
    }
  })

  it("takes one good signature among others, but looks at 16 at most", async () => {
    const one = standardWebhooks({ secrets: [secret] })
    const good = `v1,${hmac(bytes, `evt_1.${now / 1_000}.`, binary).digest("base64")}`
    const bad = `v1,${Buffer.alloc(32).toString("base64")}`
    const of = (text: string) => one.verify(signedBy("webhook", binary, text), now)
    assert.isTrue((await of(`v2,abc ${bad} ${good}`)).ok)
    assert.isTrue((await of(`${`${bad} `.repeat(15)}${good}`)).ok)
    assert.deepInclude(await of(`${`${bad} `.repeat(16)}${good}`), {
      problem: "signature-malformed"
    })
  })

  it("does not take an HMAC by a public key as its secret", async () => {
    const publicKey = Buffer.alloc(32, 9)
    const one = standardWebhooks({ secrets: [`whpk_${publicKey.toString("base64")}`] })
    const forged = hmac(publicKey, `evt_1.${now / 1_000}.`, binary).digest("base64")
    for (const version of ["v1", "v1a"]) {
      const result = await one.verify(signedBy("webhook", binary, `${version},${forged}`), now)
      assert.deepInclude(result, { problem: "signature-mismatch" })
    }
  })
})

describe("Stripe", () => {
  it("refuses a header with two times: which one is signed is not known", async () => {
    const sample = sampleOf("stripe")
    const good = await signedRequest(sample, now, sample.keys[0])
    const headers = { "stripe-signature": `t=1,${good.headers["stripe-signature"]}` }
    const result = await stripe({ secrets: ["whsec_one"] }).verify({ ...good, headers }, now)
    assert.deepInclude(result, { problem: "timestamp-malformed" })
  })

  it("reads thin events", () => {
    const body = json({
      id: "evt_1",
      object: "v2.core.event",
      type: "v1.billing.meter.error_report_triggered",
      created: "2026-11-25T10:00:00Z",
      related_object: { id: "mtr_1" }
    })
    const reading = stripe({ secrets: ["x"] }).read(request({}, body))
    assert.deepInclude(reading.ok ? reading.events[0] : {}, {
      subject: "mtr_1",
      at: Date.UTC(2026, 10, 25, 10)
    })
  })
})

describe("forms", () => {
  it("of GitHub have the JSON in a field, which is the event's body", () => {
    const payload = '{"action":"opened","zen":"ä&="}'
    const body = Buffer.from(new URLSearchParams({ payload }).toString())
    const reading = github({ secrets: ["x"] }).read(
      request({ ...form, "x-github-event": "issues" }, body)
    )
    const [event] = reading.ok ? reading.events : []
    assert.deepInclude(event, { type: "issues.opened", contentType: "application/json" })
    assert.strictEqual(Buffer.from(event?.body ?? []).toString(), payload)
  })

  it("of Slack are interactions and commands", () => {
    const of = (fields: Record<string, string>) =>
      typesOf(
        slack({ secrets: ["x"] }).read(
          request(form, Buffer.from(new URLSearchParams(fields).toString()))
        )
      )
    assert.deepStrictEqual(of({ command: "/deploy", channel_id: "C1" }), ["/deploy"])
    assert.deepStrictEqual(of({ payload: '{"type":"block_actions"}' }), ["block_actions"])
    assert.match(String(of({ payload: "{" })), /`payload` is not/)
    assert.match(String(of({})), /neither/)
  })

  it("of Mailgun are verified by their fields", async () => {
    const [timestamp, token] = [String(now / 1_000), "a".repeat(50)]
    const signature = hmac("key", timestamp, token).digest("hex")
    const fields = { timestamp, token, signature, recipient: "a@example.com", "Message-Id": "<1>" }
    const signed = request(form, Buffer.from(new URLSearchParams(fields).toString()))
    const one = mailgun({ secrets: ["key"], toleranceMs: 60_000 })
    assert.deepInclude(await one.verify(signed, now), { ok: true, at: now })
    assert.deepInclude(await one.verify(signed, now + 61_000), { problem: "timestamp-too-old" })
    const reading = one.read(signed)
    assert.deepInclude(reading.ok ? reading.events[0] : {}, { id: "<1>", type: "message" })
    for (const [name, problem] of [
      ["signature", "signature-missing"],
      ["token", "signature-missing"],
      ["timestamp", "timestamp-missing"]
    ] as const) {
      const { [name]: _, ...rest } = fields
      const without = request(form, Buffer.from(new URLSearchParams(rest).toString()))
      assert.deepInclude(await one.verify(without, now), { problem })
    }
    const huge = { ...fields, token: "a".repeat(1_000) }
    const long = request(form, Buffer.from(new URLSearchParams(huge).toString()))
    assert.deepInclude(await one.verify(long, now), { problem: "signature-malformed" })
  })
})

describe("Twilio", () => {
  const one = twilio({ secrets: ["token"], publicUrl })
  const body = json([
    {
      id: "EZ1",
      type: "com.twilio.messaging.message.sent",
      time: "2026-11-25T10:00:00Z",
      data: { messageSid: "SM1" }
    },
    { id: "EZ2", type: "com.twilio.voice.status-callback", data: {} }
  ])
  const signed = (text: Buffer, digest = createHash("sha256").update(text).digest("hex")) => {
    const url = `${publicUrl}?bodySHA256=${digest}`
    return request(
      { "x-twilio-signature": twilioWebhooks.getExpectedTwilioSignature("token", url, {}) },
      text,
      { url: `/in?bodySHA256=${digest}` }
    )
  }

  it("verifies JSON by the hash in the URL, and reads each of its events", async () => {
    assert.isTrue((await one.verify(signed(body), now)).ok)
    assert.deepInclude(await one.verify({ ...signed(body), body: json([]) }, now), {
      problem: "body-mismatch"
    })
    assert.deepInclude(await one.verify(signed(body, "zz"), now), { problem: "body-mismatch" })
    const reading = one.read(signed(body))
    assert.deepStrictEqual(reading.ok && reading.events.map(({ id, subject }) => [id, subject]), [
      ["EZ1", "SM1"],
      ["EZ2", undefined]
    ])
  })

  it("finds the URL that was signed, with its port or without", async () => {
    for (const url of [publicUrl, "https://hooks.example.com:443/in"]) {
      const headers = {
        "x-twilio-signature": twilioWebhooks.getExpectedTwilioSignature("token", url, {})
      }
      const plain = request({ ...form, ...headers }, Buffer.alloc(0), { url: "/in" })
      assert.isTrue((await one.verify(plain, now)).ok, url)
    }
    const other = {
      "x-twilio-signature": twilioWebhooks.getExpectedTwilioSignature("token", `${publicUrl}/x`, {})
    }
    assert.isFalse((await one.verify(request({ ...form, ...other }, Buffer.alloc(0)), now)).ok)
  })
})

describe("batches", () => {
  it("of SendGrid and HubSpot are an event an item, or none", () => {
    const [{ verifying }] = sampleOf("sendgrid").keys
    const providers = [
      [sendgrid({ secrets: [verifying] }), "event"],
      [hubspot({ secrets: ["x"], publicUrl }), "subscriptionType"]
    ] as const
    for (const [provider, name] of providers) {
      const of = (value: unknown) => typesOf(provider.read(request({}, json(value))))
      assert.deepStrictEqual(of([{ [name]: "a" }, { [name]: "b" }]), ["a", "b"])
      assert.deepStrictEqual(of([]), [])
      assert.match(String(of([{ [name]: "a" }, {}])), /^Item 2 of 2 has no type/)
      assert.match(String(of({ [name]: "a" })), /is not a JSON array/)
    }
  })

  it("have 5,000 events at most, so that no request takes a gateway for itself", () => {
    const [{ verifying }] = sampleOf("sendgrid").keys
    const mail = sendgrid({ secrets: [verifying] })
    const of = (count: number) =>
      mail.read(request({}, json(Array.from({ length: count }, () => ({ event: "open" })))))
    const [most, more] = [of(5_000), of(5_001)]
    assert.isTrue(most.ok && most.events.length === 5_000)
    assert.deepStrictEqual(more, {
      ok: false,
      text: "The body has 5001 events, and a batch of SendGrid may have 5000."
    })
  })

  it("of Meta are an event an entry", () => {
    const change = { field: "feed", value: {} }
    const entry = [
      { id: "1", time: 1_795_000_000, changes: [change, change] },
      { id: "2", time: 1_795_000_000_000, messaging: [{ message: { mid: "m_1" } }] },
      { id: "3", time: 1, changes: [change, { field: "likes" }] }
    ]
    const reading = meta({ secrets: ["x"] }).read(request({}, json({ object: "page", entry })))
    assert.deepStrictEqual(
      reading.ok && reading.events.map(({ at, id, subject, type }) => [id, type, at, subject]),
      [
        [undefined, "page.feed", 1_795_000_000_000, "1"],
        ["m_1", "page.messages", 1_795_000_000_000, "2"],
        [undefined, "page", 1_000, "3"]
      ]
    )
  })
})

describe("GitLab", () => {
  it("with both kinds of secrets says which one fits, and does not fall back to the weaker", async () => {
    const signing = whsec(7).signing
    const secrets = ["old token", signing, "new token"]
    const both = gitlab({ secrets })
    const sample = sampleOf("gitlab")
    const good = await signedRequest(sample, now, sample.keys[0])
    assert.deepInclude(await both.verify(good, now), { ok: true, secret: 1 })
    const byToken = request({ "x-gitlab-token": "new token" }, sample.body)
    assert.deepInclude(await both.verify(byToken, now), { ok: true, secret: 2 })
    const forged = {
      ...good,
      body: json({ object_kind: "push" }),
      headers: { ...good.headers, "x-gitlab-token": "new token" }
    }
    assert.deepInclude(await both.verify(forged, now), { problem: "signature-mismatch" })
    // One that only knows tokens is sent signatures as well.
    const tokens = gitlab({ secrets: ["new token"] })
    assert.deepInclude(await tokens.verify(forged, now), { ok: true })
    assert.deepInclude(await gitlab({ secrets: [signing] }).verify(byToken, now), {
      problem: "signature-missing"
    })
  })
})

describe("a public URL", () => {
  it("counts, with the query that arrives, whatever a proxy makes of the rest", async () => {
    const body = json({ type: "a" })
    const made = hmac("key", `${publicUrl}?x=1`, body).digest("base64")
    const one = square({ secrets: ["key"], publicUrl })
    const of = (url: string) =>
      one.verify(request({ "x-square-hmacsha256-signature": made }, body, { url }), now)
    assert.isTrue((await of("http://10.0.0.1:8088/other?x=1")).ok)
    assert.isTrue((await of("/in?x=1")).ok)
    assert.isFalse((await of("/in?x=2")).ok)
    assert.isFalse((await of("/in")).ok)
  })
})

describe("PayPal", () => {
  const sample = sampleOf("paypal")
  const { belowLeaf, chain, foreign, leaf, root } = testCertificates
  const answered = async (pem: string, roots = [root], at = now) => {
    const [{ signing: webhookId }] = sample.keys
    const one = paypal({ webhookId, certificate: async () => pem, roots })
    const result = await one.verify(await signedRequest(sample, now, sample.keys[0]), at)
    return result.ok ? "taken" : `${result.problem}: ${result.text}`
  }

  it("takes a chain that ends in a trusted certificate, and no other", async () => {
    assert.strictEqual(await answered(chain), "taken")
    assert.match(await answered(leaf), /^certificate-refused: .* does not lead to/)
    assert.match(await answered(foreign), /^certificate-refused: .* is not PayPal's/)
    assert.match(await answered(belowLeaf), /^certificate-refused: .* was not issued by the one/)
    assert.match(await answered(chain, rootCertificates.slice(0, 3)), /does not lead to/)
    assert.match(await answered(""), /is no certificate in PEM/)
    assert.match(await answered(leaf.replace("MII", "MIJ")), /is no certificate in PEM/)
    assert.match(await answered(leaf.repeat(9)), /is no certificate in PEM/)
    assert.match(await answered(chain, [root], Date.UTC(2090, 0)), /has expired/)
  })

  it("does not take a chain for good that has expired since it was checked", async () => {
    const [{ signing: webhookId }] = sample.keys
    const pems = [chain, chain, chain]
    const one = paypal({
      webhookId,
      certificate: async () => pems.shift() ?? foreign,
      roots: [root]
    })
    const good = await signedRequest(sample, now, sample.keys[0])
    const at = async (ms: number) => {
      const result = await one.verify(good, ms)
      return result.ok || result.text
    }
    assert.strictEqual(await at(now), true)
    assert.strictEqual(await at(now + 1_000), true)
    assert.match(String(await at(Date.UTC(2090, 0))), /has expired/)
    assert.match(String(await at(now + 2_000)), /is not PayPal's/)
  })

  it("asks for certificates at PayPal's hosts only", async () => {
    const good = await signedRequest(sample, now, sample.keys[0])
    for (const url of [
      "http://api.paypal.com/v1/notifications/certs/CERT-1",
      "https://api.paypal.com.example.com/v1/notifications/certs/CERT-1",
      "https://example.com/https://api.paypal.com/v1/notifications/certs/CERT-1",
      "https://api.paypal.com@example.com/v1/notifications/certs/CERT-1",
      "https://api.paypal.com:8443/v1/notifications/certs/CERT-1",
      "https://api.paypal.com/v1/notifications/certs/../../../x",
      "https://www.paypal.com/v1/notifications/certs/CERT-1",
      "https://api.paypal.com/v1/notifications/certs/CERT-1\nx",
      "file:///etc/passwd"
    ]) {
      const one = paypal({
        webhookId: sample.keys[0].signing,
        certificate: () => assert.fail(`asked for ${url}`)
      })
      const headers = { ...good.headers, "paypal-cert-url": url }
      assert.deepInclude(await one.verify({ ...good, headers }, now), {
        problem: "certificate-refused"
      })
    }
  })

  it("gives no verdict where the certificate cannot be fetched", async () => {
    const one = paypal({
      webhookId: sample.keys[0].signing,
      certificate: () => Promise.reject(new Error("connection refused"))
    })
    const good = await signedRequest(sample, now, sample.keys[0])
    let said = ""
    try {
      await one.verify(good, now)
    } catch (error) {
      said = String(error)
    }
    assert.include(said, "connection refused")
  })

  it("trusts by default the certificates that Node trusts", () => {
    const [first = ""] = rootCertificates
    const certificate = new X509Certificate(first)
    const at = Date.parse(certificate.validFrom) + 86_400_000
    assert.isUndefined(chainProblem([certificate], undefined, at))
    assert.isDefined(chainProblem([new X509Certificate(root)], undefined, now))
  })
})

describe("a secret that a provider is made with", () => {
  it("is not found in what it says", async () => {
    const one = shopify({ secrets: ["sealing-wax-1"] })
    const result = await one.verify(request({ "x-shopify-hmac-sha256": "AAAA" }, json({})), now)
    assert.deepInclude(result, { problem: "signature-mismatch" })
    assert.notInclude(JSON.stringify([result, one]), "sealing-wax-1")
  })
})
