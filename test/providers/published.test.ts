/*
 * What providers have published: requests with the secret that they are signed with. Where each is
 * from stands with it.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { github } from "../../src/providers/github.ts"
import { hubspot } from "../../src/providers/hubspot.ts"
import { paypal } from "../../src/providers/paypal.ts"
import type { Provider, ReceivedRequest } from "../../src/providers/provider.ts"
import { slack } from "../../src/providers/slack.ts"
import { standardWebhooks } from "../../src/providers/standard-webhooks.ts"
import { twilio } from "../../src/providers/twilio.ts"
import { request } from "./sample.ts"

interface Published {
  readonly name: string
  readonly provider: Provider
  readonly request: ReceivedRequest
  readonly at: number
}

const twilioForm = new URLSearchParams({
  CallSid: "CA1234567890ABCDE",
  Caller: "+14158675309",
  Digits: "1234",
  From: "+14158675309",
  To: "+18005551212"
}).toString()

const hubspotBody = "{'example_field':'example_value'}"
const hubspotAt = (at: number, signature: string): Published => ({
  // The tests of hubspot-api-python and hubspot-api-ruby.
  name: `hubspot at ${at}`,
  provider: hubspot({
    secrets: ["yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy"],
    publicUrl: "https://www.example.com/webhook_uri"
  }),
  request: request(
    { "x-hubspot-signature-v3": signature, "x-hubspot-request-timestamp": String(at) },
    Buffer.from(hubspotBody),
    { url: "/webhook_uri" }
  ),
  at
})

const published: ReadonlyArray<Published> = [
  {
    // The specification of Standard Webhooks.
    name: "standard-webhooks",
    provider: standardWebhooks({ secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] }),
    request: request(
      {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
      },
      Buffer.from('{"test": 2432232314}')
    ),
    at: 1_614_265_330_000
  },
  {
    // GitHub's page "Validating webhook deliveries".
    name: "github",
    provider: github({ secrets: ["It's a Secret to Everybody"] }),
    request: request(
      {
        "x-hub-signature-256":
          "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
      },
      Buffer.from("Hello, World!")
    ),
    at: 0
  },
  {
    // Slack's page "Verifying requests from Slack".
    name: "slack",
    provider: slack({ secrets: ["8f742231b10e8888abcd99yyyzzz85a5"] }),
    request: request(
      {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": "1531420618",
        "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
      },
      Buffer.from(
        "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
      )
    ),
    at: 1_531_420_618_000
  },
  {
    // Twilio's page "Security", and the tests of its libraries.
    name: "twilio",
    provider: twilio({ secrets: ["12345"], publicUrl: "https://mycompany.com/myapp.php" }),
    request: request(
      {
        "content-type": "application/x-www-form-urlencoded",
        "x-twilio-signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="
      },
      Buffer.from(twilioForm),
      { url: "/myapp.php?foo=1&bar=2" }
    ),
    at: 0
  },
  hubspotAt(1_693_657_560_000, "K36dawei4A+QBNolUOqo7s91KQDWQ5MXZ/QufNYuk/Y="),
  hubspotAt(1_700_000_300_000, "RnbPH7+UMKVkbV32P8bz450N4M56aPmcru1+D3kSDtw=")
]

describe("what providers have published", () => {
  for (const { at, name, provider, request } of published)
    it(`is verified: ${name}`, async () => {
      assert.deepInclude(await provider.verify(request, at), { ok: true, secret: 0 })
      const changed = { ...request, body: Buffer.concat([request.body, Buffer.from("\0")]) }
      assert.isFalse((await provider.verify(changed, at)).ok)
    })

  it("is verified by the certificate that a real request of PayPal's sandbox was signed with", async () => {
    const path = join(import.meta.dirname, "../fixtures/providers/paypal.json")
    const { body, certificate, headers, webhookId } = JSON.parse(readFileSync(path, "utf8"))
    const [at, urls] = [Date.UTC(2019, 7, 29, 10, 50), [] as Array<string>]
    const make = (roots?: ReadonlyArray<string>) =>
      paypal({
        webhookId,
        certificate: async (url) => {
          urls.push(url)
          return certificate
        },
        ...(roots !== undefined && { roots })
      })
    // PayPal's answer of then is not published with those that issued the certificate.
    const one = make([certificate])
    const given = request(headers, Buffer.from(body))
    assert.deepStrictEqual(await one.verify(given, at), {
      ok: true,
      secret: 0,
      at: Date.UTC(2019, 7, 29, 10, 49, 33)
    })
    assert.deepStrictEqual(urls, [headers["paypal-cert-url"]])
    const read = one.read(given)
    assert.deepInclude(read.ok ? read.events[0] : {}, {
      id: "WH-7MU294299R542214K-4N1831857K851783H",
      type: "PAYMENTS.PAYMENT.CREATED",
      subject: "PAYID-LVT22VY7N839502VJ678725M"
    })
    const changed = request(headers, Buffer.from(body.replace("30.11", "30.12")))
    assert.deepInclude(await one.verify(changed, at), { problem: "signature-mismatch" })
    const late = await one.verify(given, Date.UTC(2026, 10, 25))
    assert.deepInclude(late, { problem: "certificate-refused" })
    assert.include(late.ok ? "" : late.text, "has expired")
    const untrusted = await make().verify(given, at)
    assert.deepInclude(untrusted, { problem: "certificate-refused" })
  })
})
