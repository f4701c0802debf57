import { readObject, textAt } from "./body.ts"
import { decoded, fromBase64 } from "./encoded.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { type SecretSettings, secretsSetting } from "./settings.ts"
import { type Claim, headerOf, malformedSignature, type Refusal } from "./signed.ts"

const header = "x-shopify-hmac-sha256"

/** Returns the claim of a header that holds the HMAC of parts in base64. */
export const base64Claim = (
  request: ReceivedRequest,
  name: string,
  parts: Claim["parts"]
): Claim | Refusal => {
  const given = headerOf(request, name)
  if (!given.ok) return given
  const signatures = decoded([given.value], fromBase64)
  if (signatures.length === 0) return malformedSignature(name, "base64")
  return { ok: true, signatures, parts }
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

export const shopifyKind = hmacKind<SecretSettings>({
  name: "shopify",
  title: "Shopify",
  settings: [secretsSetting("the app's client secrets, or the secret of the shop's webhooks")],
  // It tries for 4 hours, and sends nothing again later.
  repeatsForMs: daysMs(1),
  waitsForMs: 5_000,
  retries429: true,
  words: {
    header,
    signed: "the body",
    id: "`x-shopify-webhook-id`",
    type: "`x-shopify-topic`",
    at: "`x-shopify-triggered-at`",
    subject: "`x-shopify-shop-domain`, `/` and `admin_graphql_api_id`, else `id`"
  },
  signsTime: false,
  claimOf: (request) => base64Claim(request, header, [request.body]),
  read
})

/** Webhooks of Shopify, by the client secrets of the app or the secret in a shop's settings. */
export const shopify = (settings: SecretSettings): Provider => provide(shopifyKind, settings)
