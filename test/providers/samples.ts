import { sign as signForGithub } from "@octokit/webhooks-methods"
import { Webhook } from "standardwebhooks"
import Stripe from "stripe"
import { genericHmac } from "../../src/providers/generic-hmac.ts"
import { github } from "../../src/providers/github.ts"
import { shopify } from "../../src/providers/shopify.ts"
import { slack } from "../../src/providers/slack.ts"
import { petrel, standardWebhooks } from "../../src/providers/standard-webhooks.ts"
import { stripe } from "../../src/providers/stripe.ts"

import { callerSamples } from "./caller-samples.ts"
import { keySamples } from "./key-samples.ts"
import { hmac, json, plain, request, type Sample, seconds, whsec } from "./sample.ts"

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

const ownSamples: ReadonlyArray<Sample> = [
  standard("standard-webhooks", (secrets, toleranceMs = 300_000) =>
    standardWebhooks({ secrets, toleranceMs })
  ),
  standard("petrel", (secrets, toleranceMs = 300_000) => petrel({ secrets, toleranceMs })),
  {
    name: "stripe",
    keys: [plain("whsec_one"), plain("whsec_two")],
    make: (secrets, toleranceMs = 300_000) => stripe({ secrets, toleranceMs }),
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
    make: (secrets, toleranceMs = 300_000) => slack({ secrets, toleranceMs }),
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
    make: (secrets, toleranceMs = 300_000) =>
      genericHmac({
        secrets,
        toleranceMs,
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

export const samples: ReadonlyArray<Sample> = [...ownSamples, ...callerSamples, ...keySamples]
