import { createSecretKey } from "node:crypto"
import { readObject, textAt } from "./body.ts"
import { decoded, fromBase64 } from "./encoded.ts"
import { daysMs, type ProviderKind, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { secretsSetting } from "./settings.ts"
import { type Claim, headerOf, malformedSignature, type Refusal, verifiedByHmac } from "./signed.ts"

export interface ShopifySettings {
  /** The client secrets of the app or, for webhooks of a shop's settings, the secret shown there. */
  readonly secrets: ReadonlyArray<string>
}

const header = "x-shopify-hmac-sha256"

const claimOf = (request: ReceivedRequest): Claim | Refusal => {
  const given = headerOf(request, header)
  if (!given.ok) return given
  const signatures = decoded([given.value], fromBase64)
  if (signatures.length === 0) return malformedSignature(header, "base64")
  return { ok: true, signatures, parts: [request.body] }
}

const subjectOf = (shop: string | undefined, json: object): string | undefined => {
  const id = textAt(json, "admin_graphql_api_id") ?? textAt(json, "id")
  const parts = [shop, id].filter((part) => part !== undefined && part !== "")
  return parts.length === 0 ? undefined : parts.join("/")
}

const read = (request: ReceivedRequest): Reading => {
  const { headers } = request
  const at = Date.parse(headers["x-shopify-triggered-at"] ?? "")
  return readObject(request, "Shopify", "the header x-shopify-topic", (json) => ({
    id: headers["x-shopify-webhook-id"] || undefined,
    type: headers["x-shopify-topic"] || undefined,
    at: Number.isFinite(at) ? at : undefined,
    subject: subjectOf(headers["x-shopify-shop-domain"], json)
  }))
}

export const shopifyKind: ProviderKind<ShopifySettings> = {
  name: "shopify",
  title: "Shopify",
  settings: [secretsSetting("the app's client secrets, or the secret of the shop's webhooks")],
  // It tries for 4 hours, and sends nothing again later.
  repeatsForMs: daysMs(1),
  retries429: true,
  words: {
    header,
    signed: "the body",
    id: "`x-shopify-webhook-id`",
    type: "`x-shopify-topic`",
    at: "`x-shopify-triggered-at`",
    subject: "`x-shopify-shop-domain`, `/` and `admin_graphql_api_id`, else `id`"
  },
  make: ({ secrets }) => {
    const keys = secrets.map((secret) => createSecretKey(Buffer.from(secret)))
    return {
      verify: (request, nowMs) => verifiedByHmac(claimOf(request), keys, nowMs),
      read
    }
  }
}

/** Webhooks of Shopify, by the client secrets of the app. */
export const shopify = (settings: ShopifySettings): Provider => provide(shopifyKind, settings)
