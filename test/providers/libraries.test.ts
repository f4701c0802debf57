/*
 * The providers' own libraries verify what the samples sign, so what the samples sign is what these
 * providers send.
 */

import { assert, describe, it } from "@effect/vitest"
import { LinearWebhookClient } from "@linear/sdk/webhooks"
import { verify as verifyForGithub } from "@octokit/webhooks-methods"
import { Paddle } from "@paddle/paddle-node-sdk"
import { EventWebhook } from "@sendgrid/eventwebhook"
import { verifyKey } from "discord-interactions"
import { Webhook } from "standardwebhooks"
import Stripe from "stripe"
import twilioWebhooks from "twilio/lib/webhooks/webhooks.js"
import type { ReceivedRequest } from "../../src/providers/provider.ts"
import { type Key, signedRequest } from "./sample.ts"
import { samples } from "./samples.ts"

type Verify = (request: ReceivedRequest, key: Key) => boolean | Promise<boolean>

const header = ({ headers }: ReceivedRequest, name: string): string => headers[name] ?? ""
const text = ({ body }: ReceivedRequest): string => Buffer.from(body).toString()
const publicUrl = "https://hooks.example.com/in"

/** Returns whether nothing is thrown. */
const passes = (run: () => unknown): boolean => {
  try {
    run()
    return true
  } catch {
    return false
  }
}

/** By the library's own way, at the time of the machine. */
const libraries: Readonly<Record<string, Verify>> = {
  "standard-webhooks": (request, key) =>
    passes(() =>
      new Webhook(key.verifying).verify(text(request), request.headers as Record<string, string>)
    ),
  petrel: (request, key) =>
    passes(() =>
      new Webhook(key.verifying).verify(text(request), request.headers as Record<string, string>)
    ),
  // GitLab's signing tokens are Standard Webhooks.
  gitlab: (request, key) =>
    passes(() =>
      new Webhook(key.verifying).verify(text(request), request.headers as Record<string, string>)
    ),
  stripe: (request, key) =>
    passes(() =>
      new Stripe("sk_test_none").webhooks.constructEvent(
        Buffer.from(request.body),
        header(request, "stripe-signature"),
        key.verifying
      )
    ),
  github: (request, key) =>
    verifyForGithub(key.verifying, text(request), header(request, "x-hub-signature-256")),
  slack: async (request, key) => {
    const { verifySlackRequest } = await import(
      "../../node_modules/@slack/bolt/dist/receivers/verify-request.js"
    )
    return passes(() =>
      verifySlackRequest({
        signingSecret: key.verifying,
        body: text(request),
        headers: {
          "x-slack-signature": header(request, "x-slack-signature"),
          "x-slack-request-timestamp": Number(header(request, "x-slack-request-timestamp"))
        }
      })
    )
  },
  twilio: (request, key) => {
    const form = new URLSearchParams(text(request))
    return twilioWebhooks.validateRequest(
      key.verifying,
      header(request, "x-twilio-signature"),
      `${publicUrl}?a=1`,
      Object.fromEntries([...form.keys()].map((name) => [name, form.getAll(name)]))
    )
  },
  sendgrid: (request, key) => {
    const webhook = new EventWebhook()
    return webhook.verifySignature(
      webhook.convertPublicKeyToECDSA(key.verifying),
      Buffer.from(request.body),
      header(request, "x-twilio-email-event-webhook-signature"),
      header(request, "x-twilio-email-event-webhook-timestamp")
    )
  },
  paddle: (request, key) =>
    new Paddle("none").webhooks.isSignatureValid(
      text(request),
      key.verifying,
      header(request, "paddle-signature")
    ),
  square: async (request, key) => {
    // The whole library takes seconds to load.
    const { WebhooksHelper } = await import("../../node_modules/square/wrapper/WebhooksHelper.js")
    return WebhooksHelper.verifySignature({
      requestBody: text(request),
      signatureHeader: header(request, "x-square-hmacsha256-signature"),
      signatureKey: key.verifying,
      notificationUrl: publicUrl
    })
  },
  discord: (request, key) =>
    verifyKey(
      request.body,
      header(request, "x-signature-ed25519"),
      header(request, "x-signature-timestamp"),
      key.verifying
    ),
  linear: (request, key) =>
    passes(() =>
      new LinearWebhookClient(key.verifying).verify(
        Buffer.from(request.body),
        header(request, "linear-signature"),
        JSON.parse(text(request)).webhookTimestamp
      )
    ),
  shopify: async (request, key) => {
    await import("@shopify/shopify-api/adapters/node")
    const { ApiVersion, shopifyApi } = await import("@shopify/shopify-api")
    const shop = shopifyApi({
      apiKey: "none",
      apiSecretKey: key.verifying,
      hostName: "hooks.example.com",
      apiVersion: Object.values(ApiVersion).at(-1) ?? ApiVersion.Unstable,
      isEmbeddedApp: false,
      logger: { log: () => undefined }
    })
    const found = await shop.webhooks.validate({
      rawBody: text(request),
      rawRequest: { method: "POST", url: "/in", headers: { ...request.headers } } as never,
      rawResponse: {} as never
    })
    return found.valid
  }
}

describe("the providers' own libraries", () => {
  for (const [name, verify] of Object.entries(libraries))
    it(`verify what is signed here: ${name}`, async () => {
      const sample = samples.find((one) => one.name === name) ?? assert.fail(name)
      const [key, other] = sample.keys
      const at = Math.floor(Date.now() / 1_000) * 1_000
      const good = await signedRequest(sample, at, key)
      assert.isTrue(await verify(good, key))
      assert.isFalse(await verify(await signedRequest(sample, at, other), key))
      const own = await sample.make([key.verifying], 60_000).verify(good, at)
      assert.deepInclude(own, { ok: true })
    })
})
