import { momentAt, readObject, textAt, valueAt } from "./body.ts"
import { decoded, fromBase64 } from "./encoded.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider, ReceivedRequest } from "./provider.ts"
import { type SecretSettings, secretsSetting } from "./settings.ts"
import { type Claim, headerOf, hmacOf, malformedSignature, type Refusal } from "./signed.ts"

const header = "x-twitter-webhooks-signature"

const claimOf = (request: ReceivedRequest): Claim | Refusal => {
  const given = headerOf(request, header)
  if (!given.ok) return given
  const text = given.value.startsWith("sha256=") ? given.value.slice("sha256=".length) : ""
  const signatures = decoded([text], fromBase64)
  if (signatures.length === 0) return malformedSignature(header, "sha256=BASE64")
  return { ok: true, signatures, parts: [request.body] }
}

/** Returns the name that a body of the Account Activity API has its events under. */
const activityOf = (json: object): string | undefined =>
  Object.keys(json).find((name) => name.endsWith("_events") || name.endsWith("_event"))

const find = (json: object) => {
  const activity = activityOf(json)
  const events = activity === undefined ? undefined : valueAt(json, activity)
  const only: unknown = Array.isArray(events) && events.length === 1 ? events[0] : undefined
  // X Activity has its event in `data`, filtered streams have a post there.
  const data = valueAt(json, "data")
  return {
    id:
      textAt(only, "id_str") ??
      textAt(only, "id") ??
      textAt(data, "event_uuid") ??
      textAt(data, "id"),
    type: activity ?? textAt(data, "event_type") ?? (data === undefined ? undefined : "post"),
    at:
      momentAt(
        { ms: Number(textAt(only, "timestamp_ms") ?? textAt(only, "created_timestamp")) },
        "ms",
        "ms"
      ) ?? momentAt(data, "s", "created_at"),
    subject:
      textAt(json, "for_user_id") ?? textAt(data, "filter", "user_id") ?? textAt(data, "author_id")
  }
}

/**
 * X signs bodies as its checks are answered, and anybody may ask: a token that could be a body must
 * not be signed. Those of X have none of the characters that JSON begins with.
 */
const tokenForm = /^[\w+/=-]{1,200}$/

export const xKind = hmacKind<SecretSettings>({
  name: "x",
  title: "X",
  settings: [secretsSetting("the app's consumer secrets (API key secrets)")],
  signsTime: false,
  // It tries for 5 minutes; a replay sends again what was sent in the last 5 days.
  repeatsForMs: daysMs(5),
  waitsForMs: 3_000,
  retries429: false,
  words: {
    header,
    signed: "the body",
    id: "`id_str` or `id` of the only event, else `data.event_uuid`, else `data.id`",
    type: "the name that ends in `_events`, else `data.event_type`, else the word `post`",
    at: "`timestamp_ms` or `created_timestamp`, else `data.created_at`",
    subject: "`for_user_id`, else `data.filter.user_id`, else `data.author_id`"
  },
  claimOf,
  read: (request) =>
    readObject(request, "X", "the name that ends in `_events`, or in `data.event_type`", find),
  handshake: ({ method, url }, _, __, [key]) => {
    const token = new URLSearchParams(url.slice(url.indexOf("?") + 1)).get("crc_token")
    if (method !== "GET" || token === null || !tokenForm.test(token) || key === undefined)
      return undefined
    const made = hmacOf("sha256", key, [token]).toString("base64")
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ response_token: `sha256=${made}` })
    }
  }
})

/** Webhooks of X by the consumer secrets of the app: the first one answers its checks. */
export const x = (settings: SecretSettings): Provider => provide(xKind, settings)
