import { createHmac } from "node:crypto"
import { sign as signForGithub } from "@octokit/webhooks-methods"
import { Webhook } from "standardwebhooks"
import Stripe from "stripe"
import { genericHmac } from "../../src/providers/generic-hmac.ts"
import { github } from "../../src/providers/github.ts"
import type { Provider, ReceivedRequest } from "../../src/providers/provider.ts"
import { shopify } from "../../src/providers/shopify.ts"
import { slack } from "../../src/providers/slack.ts"
import { petrel, standardWebhooks } from "../../src/providers/standard-webhooks.ts"
import { stripe } from "../../src/providers/stripe.ts"

/** What a test signs with, and what the receiver is given to verify it. They may be one. */
export interface Key {
  readonly signing: string
  readonly verifying: string
}

export interface SignedInput {
  readonly body: Buffer
  /** ms, a multiple of 1,000. */
  readonly at: number
  readonly key: Key
}

/** Requests of a provider, as its own library signs them where there is one. */
export interface Sample {
  readonly name: string
  /** Two keys that differ. */
  readonly keys: readonly [Key, Key]
  readonly make: (secrets: ReadonlyArray<string>) => Provider
  readonly body: Buffer
  readonly sign: (input: SignedInput) => ReceivedRequest | Promise<ReceivedRequest>
  /** The header with the signature. */
  readonly header: string
  /** The header whose time is signed; undefined where none is, or where it is elsewhere. */
  readonly timeHeader?: string
  readonly isTimeSigned: boolean
  /** Whether the signature is of the body. */
  readonly isBodySigned: boolean
}

const plain = (text: string): Key => ({ signing: text, verifying: text })
const whsec = (fill: number) => plain(`whsec_${Buffer.alloc(32, fill).toString("base64")}`)

export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

export const request = (
  headers: Record<string, string>,
  body: Buffer,
  { method = "POST", url = "https://hooks.example.com/in" } = {}
): ReceivedRequest => ({
  method,
  url,
  headers: { "content-type": "application/json", ...headers },
  body
})

export const hmac = (key: string | Uint8Array, ...parts: ReadonlyArray<string | Uint8Array>) => {
  const made = createHmac("sha256", key)
  for (const part of parts) made.update(part)
  return made
}

const seconds = (at: number) => String(at / 1_000)

const standard = (name: string, make: Sample["make"]): Sample => ({
  name,
  keys: [whsec(7), whsec(8)],
  make,
  body: json({ type: "invoice.paid", timestamp: "2026-11-25T10:00:00Z", data: { id: "in_1" } }),
  sign: ({ at, body, key }) =>
    request(
      {
        "webhook-id": "evt_1",
        "webhook-timestamp": seconds(at),
        "webhook-signature": new Webhook(key.signing).sign("evt_1", new Date(at), body),
        "webhook-event-type": "invoice.paid"
      },
      body
    ),
  header: "webhook-signature",
  timeHeader: "webhook-timestamp",
  isTimeSigned: true,
  isBodySigned: true
})

const stripeLibrary = new Stripe("sk_test_none")

export const samples: ReadonlyArray<Sample> = [
  standard("standard-webhooks", (secrets) => standardWebhooks({ secrets })),
  standard("petrel", (secrets) => petrel({ secrets })),
  {
    name: "stripe",
    keys: [plain("whsec_one"), plain("whsec_two")],
    make: (secrets) => stripe({ secrets }),
    body: json({
      id: "evt_1",
      object: "event",
      type: "invoice.paid",
      created: 1_795_000_000,
      data: { object: { id: "in_1", customer: "cus_1" } }
    }),
    sign: ({ at, body, key }) =>
      request(
        {
          "stripe-signature": stripeLibrary.webhooks.generateTestHeaderString({
            payload: body.toString(),
            secret: key.signing,
            timestamp: at / 1_000
          })
        },
        body
      ),
    header: "stripe-signature",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "github",
    keys: [plain("sealing-wax-1"), plain("sealing-wax-2")],
    make: (secrets) => github({ secrets }),
    body: json({ action: "opened", issue: { number: 1 }, repository: { full_name: "acme/shop" } }),
    sign: async ({ body, key }) =>
      request(
        {
          "x-hub-signature-256": await signForGithub(key.signing, body.toString()),
          "x-github-event": "issues",
          "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958"
        },
        body
      ),
    header: "x-hub-signature-256",
    isTimeSigned: false,
    isBodySigned: true
  },
  {
    name: "shopify",
    keys: [plain("sealing-wax-1"), plain("sealing-wax-2")],
    make: (secrets) => shopify({ secrets }),
    body: json({ id: 820_982_911_946_154_500, admin_graphql_api_id: "gid://shopify/Order/1" }),
    sign: ({ body, key }) =>
      request(
        {
          "x-shopify-hmac-sha256": hmac(key.signing, body).digest("base64"),
          "x-shopify-topic": "orders/create",
          "x-shopify-webhook-id": "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
          "x-shopify-event-id": "98880550-7158-44d4-b7cd-2c97c8a091b5",
          "x-shopify-shop-domain": "acme.myshopify.com",
          "x-shopify-api-version": "2026-10",
          "x-shopify-triggered-at": "2026-11-25T10:00:00.123Z"
        },
        body
      ),
    header: "x-shopify-hmac-sha256",
    isTimeSigned: false,
    isBodySigned: true
  },
  {
    name: "slack",
    keys: [plain("sealing-wax-1"), plain("sealing-wax-2")],
    make: (secrets) => slack({ secrets }),
    body: json({
      type: "event_callback",
      event_id: "Ev1",
      event_time: 1_795_000_000,
      event: { type: "app_mention", channel: "C1", user: "U1" }
    }),
    sign: ({ at, body, key }) =>
      request(
        {
          "x-slack-request-timestamp": seconds(at),
          "x-slack-signature": `v0=${hmac(key.signing, `v0:${seconds(at)}:`, body).digest("hex")}`
        },
        body
      ),
    header: "x-slack-signature",
    timeHeader: "x-slack-request-timestamp",
    isTimeSigned: true,
    isBodySigned: true
  },
  {
    name: "hmac",
    keys: [plain("sealing-wax-1"), plain("sealing-wax-2")],
    make: (secrets) =>
      genericHmac({
        secrets,
        scheme: {
          header: "x-acme-signature",
          prefix: "sha256=",
          signed: "{timestamp}.{id}.{body}",
          timestampHeader: "x-acme-time",
          timestampUnit: "ms",
          id: "header:x-acme-id",
          type: "body:kind",
          at: "body:at",
          subject: "body:about.id"
        }
      }),
    body: json({ kind: "a.b", at: 1_795_000_000, about: { id: 7 } }),
    sign: ({ at, body, key }) =>
      request(
        {
          "x-acme-time": String(at),
          "x-acme-id": "1",
          "x-acme-signature": `sha256=${hmac(key.signing, `${at}.1.`, body).digest("hex")}`
        },
        body
      ),
    header: "x-acme-signature",
    timeHeader: "x-acme-time",
    isTimeSigned: true,
    isBodySigned: true
  }
]
