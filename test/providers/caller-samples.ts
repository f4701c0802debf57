import twilioWebhooks from "twilio/lib/webhooks/webhooks.js"
import { gitlab } from "../../src/providers/gitlab.ts"
import { hubspot } from "../../src/providers/hubspot.ts"
import { linear } from "../../src/providers/linear.ts"
import { mailgun } from "../../src/providers/mailgun.ts"
import { meta } from "../../src/providers/meta.ts"
import { paddle } from "../../src/providers/paddle.ts"
import { square } from "../../src/providers/square.ts"
import { twilio } from "../../src/providers/twilio.ts"
import { x } from "../../src/providers/x.ts"
import { zoom } from "../../src/providers/zoom.ts"
import { hmac, json, plain, request, type Sample, seconds, whsec } from "./sample.ts"

const keys = [plain("sealing-wax-1"), plain("sealing-wax-2")] as const
const publicUrl = "https://hooks.example.com/in"
const wellBefore = "2026-11-25T10:00:00Z"
const formType = { "content-type": "application/x-www-form-urlencoded" }

const twilioForm = Buffer.from(
  "MessageSid=SM1&MessageStatus=delivered&To=%2B1800&From=%2B1900&Body=x+y&Media=2&Media=1"
)

/** Providers that sign with a secret, on top of those in samples.ts. */
export const callerSamples: ReadonlyArray<Sample> = [
  {
    name: "paddle",
    keys,
    make: (secrets, toleranceMs = 5_000) => paddle({ secrets, toleranceMs }),
    body: json({
      event_id: "evt_1",
      event_type: "transaction.paid",
      occurred_at: wellBefore,
      notification_id: "ntf_1",
      data: { id: "txn_1", customer_id: "ctm_1" }
    }),
    sign: ({ at, body, key }) => {
      const h1 = hmac(key.signing, `${seconds(at)}:`, body).digest("hex")
      return request({ "paddle-signature": `ts=${seconds(at)};h1=${h1}` }, body)
    },
    header: "paddle-signature",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "square",
    keys,
    make: (secrets) => square({ secrets, publicUrl }),
    body: json({
      merchant_id: "M1",
      type: "payment.updated",
      event_id: "evt_1",
      created_at: wellBefore,
      data: { type: "payment", id: "pay_1" }
    }),
    sign: ({ body, key }) =>
      request(
        {
          "x-square-hmacsha256-signature": hmac(key.signing, publicUrl, body).digest("base64")
        },
        body,
        // A proxy has changed what arrives.
        { url: "http://10.0.0.1:8088/in" }
      ),
    header: "x-square-hmacsha256-signature",
    isTimeSigned: false,
    isBodySigned: true
  },
  {
    name: "linear",
    keys,
    make: (secrets, toleranceMs = 60_000) => linear({ secrets, toleranceMs }),
    body: json({ action: "create", type: "Issue", createdAt: wellBefore, data: { id: "iss_1" } }),
    stamp: (body, at) => json({ ...JSON.parse(body.toString()), webhookTimestamp: at }),
    sign: ({ body, key }) =>
      request(
        {
          "linear-signature": hmac(key.signing, body).digest("hex"),
          "linear-delivery": "234d1a4e-b617-4388-90fe-adc3633d6b72",
          "linear-event": "Issue"
        },
        body
      ),
    header: "linear-signature",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "zoom",
    keys,
    make: (secrets, toleranceMs) =>
      zoom({ secrets, ...(toleranceMs !== undefined && { toleranceMs }) }),
    body: json({
      event: "meeting.started",
      event_ts: 1_795_000_000_123,
      payload: { account_id: "a", object: { uuid: "4444AAAiAAAAAiAiAiiAii==", id: "94" } }
    }),
    sign: ({ at, body, key }) =>
      request(
        {
          "x-zm-request-timestamp": seconds(at),
          "x-zm-signature": `v0=${hmac(key.signing, `v0:${seconds(at)}:`, body).digest("hex")}`
        },
        body
      ),
    header: "x-zm-signature",
    timeHeader: "x-zm-request-timestamp",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "hubspot",
    keys,
    make: (secrets, toleranceMs = 300_000) => hubspot({ secrets, publicUrl, toleranceMs }),
    body: json([
      {
        eventId: 1,
        subscriptionId: 12_345,
        portalId: 62_515,
        occurredAt: 1_795_000_000_000,
        subscriptionType: "contact.creation",
        attemptNumber: 0,
        objectId: 123
      }
    ]),
    sign: ({ at, body, key }) =>
      request(
        {
          "x-hubspot-request-timestamp": String(at),
          "x-hubspot-signature-v3": hmac(
            key.signing,
            `POST${publicUrl}?to=a:b&x=%20`,
            body,
            String(at)
          ).digest("base64")
        },
        body,
        { url: "/in?to=a%3Ab&x=%20" }
      ),
    header: "x-hubspot-signature-v3",
    timeHeader: "x-hubspot-request-timestamp",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "mailgun",
    keys,
    make: (secrets, toleranceMs) =>
      mailgun({ secrets, ...(toleranceMs !== undefined && { toleranceMs }) }),
    body: json({
      "event-data": {
        id: "Ase7i2zsRYeDXztHGENqRA",
        event: "opened",
        timestamp: 1_795_000_000.123,
        message: { headers: { "message-id": "20130503182626.18666.16540@example.com" } }
      }
    }),
    stamp: (body, at, key) => {
      const [timestamp, token] = [seconds(at), "a".repeat(50)]
      const signature = hmac(key.signing, timestamp, token).digest("hex")
      return json({ signature: { timestamp, token, signature }, ...JSON.parse(body.toString()) })
    },
    sign: ({ body }) => request({}, body),
    isTimeSigned: true,
    isBodySigned: false
  },
  {
    name: "meta",
    keys,
    make: (secrets) => meta({ secrets, verifyToken: "open sesame" }),
    body: json({
      object: "whatsapp_business_account",
      entry: [
        {
          id: "biz_1",
          time: 1_795_000_000,
          changes: [{ field: "messages", value: { messages: [{ id: "wamid.1" }] } }]
        }
      ]
    }),
    sign: ({ body, key }) =>
      request({ "x-hub-signature-256": `sha256=${hmac(key.signing, body).digest("hex")}` }, body),
    header: "x-hub-signature-256",
    isTimeSigned: false,
    isBodySigned: true
  },
  {
    name: "x",
    keys,
    make: (secrets) => x({ secrets }),
    body: json({
      for_user_id: "2244994945",
      tweet_create_events: [
        { id: 1e18, id_str: "1000000000000000001", timestamp_ms: "1795000000000" }
      ]
    }),
    sign: ({ body, key }) =>
      request(
        { "x-twitter-webhooks-signature": `sha256=${hmac(key.signing, body).digest("base64")}` },
        body
      ),
    header: "x-twitter-webhooks-signature",
    isTimeSigned: false,
    isBodySigned: true
  },
  {
    name: "gitlab",
    keys: [whsec(7), whsec(8)],
    make: (secrets, toleranceMs = 300_000) => gitlab({ secrets, toleranceMs }),
    body: json({
      object_kind: "merge_request",
      object_attributes: { action: "open", iid: 1, updated_at: "2026-11-25 10:00:00 UTC" },
      project: { path_with_namespace: "acme/shop" }
    }),
    sign: ({ at, body, key }) => {
      const bytes = Buffer.from(key.signing.slice("whsec_".length), "base64")
      const made = hmac(bytes, `f5e5f430.${seconds(at)}.`, body).digest("base64")
      return request(
        {
          "x-gitlab-event": "Merge Request Hook",
          "webhook-id": "f5e5f430",
          "webhook-timestamp": seconds(at),
          "webhook-signature": `v1,${made}`
        },
        body
      )
    },
    header: "webhook-signature",
    timeHeader: "webhook-timestamp",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "gitlab",
    variant: "by secret token",
    keys,
    make: (secrets) => gitlab({ secrets }),
    body: json({ object_kind: "push", project: { path_with_namespace: "acme/shop" } }),
    sign: ({ at, body, key }) =>
      request(
        {
          "x-gitlab-event": "Push Hook",
          "x-gitlab-token": key.signing,
          // GitLab sends these with and without a signature.
          "webhook-id": "f5e5f431",
          "webhook-timestamp": seconds(at)
        },
        body
      ),
    header: "x-gitlab-token",
    isTimeSigned: false,
    isBodySigned: false
  },
  {
    name: "twilio",
    keys,
    make: (secrets) => twilio({ secrets, publicUrl }),
    body: twilioForm,
    sign: ({ body, key }) => {
      const form = new URLSearchParams(body.toString())
      const fields = Object.fromEntries([...form.keys()].map((name) => [name, form.getAll(name)]))
      const made = twilioWebhooks.getExpectedTwilioSignature(
        key.signing,
        `${publicUrl}?a=1`,
        fields
      )
      return request(
        { ...formType, "x-twilio-signature": made, "i-twilio-idempotency-token": "idem_1" },
        body,
        { url: "/in?a=1" }
      )
    },
    header: "x-twilio-signature",
    isTimeSigned: false,
    isBodySigned: true
  }
]
