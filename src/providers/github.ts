import { bodyJson, bodyText, eventOf, mediaTypeOf, textAt, unreadable } from "./body.ts"
import { decoded, fromHex } from "./encoded.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { type SecretSettings, secretsSetting } from "./settings.ts"
import { type Claim, headerOf, malformedSignature, type Refusal } from "./signed.ts"

const header = "x-hub-signature-256"

/** Returns the claim of a header that holds `sha256=` and the body's HMAC in hexadecimal. */
export const hubClaimOf = (request: ReceivedRequest): Claim | Refusal => {
  const given = headerOf(request, header)
  if (!given.ok) return given
  const [, text = ""] = given.value.split("sha256=")
  const signatures = given.value === `sha256=${text}` ? decoded([text], fromHex) : []
  if (signatures.length === 0) return malformedSignature(header, "sha256=HEX")
  return { ok: true, signatures, parts: [request.body] }
}

/** Returns the JSON that a webhook with the content type of forms has in its field. */
const payloadOf = (request: ReceivedRequest): Uint8Array | undefined => {
  if (mediaTypeOf(request) !== "application/x-www-form-urlencoded") return request.body
  const payload = new URLSearchParams(bodyText(request.body) ?? "").get("payload")
  return payload === null ? undefined : Buffer.from(payload)
}

const read = (request: ReceivedRequest): Reading => {
  const type = request.headers["x-github-event"]
  if (type === undefined || type === "")
    return unreadable("The request has no type: GitHub has it in the header x-github-event.")
  const body = payloadOf(request)
  const json = body === undefined ? undefined : bodyJson(body)
  if (body === undefined || typeof json !== "object" || json === null)
    return unreadable("The body is not a JSON object, as GitHub sends them.")
  const action = textAt(json, "action")
  const found = {
    id: request.headers["x-github-delivery"],
    type: action === undefined ? type : `${type}.${action}`,
    subject: textAt(json, "repository", "full_name") ?? textAt(json, "organization", "login")
  }
  return { ok: true, events: [eventOf(found, body, "application/json")] }
}

export const githubKind = hmacKind<SecretSettings>({
  name: "github",
  title: "GitHub",
  settings: [secretsSetting("what was entered as the secret of the webhook")],
  // A delivery can be sent again, by hand, for 3 days.
  repeatsForMs: daysMs(3),
  waitsForMs: 10_000,
  retries429: false,
  words: {
    header,
    signed: "the body",
    id: "`x-github-delivery`",
    type: "`x-github-event`, and `action` after a dot if the body has it",
    at: "–",
    subject: "`repository.full_name`, else `organization.login`"
  },
  signsTime: false,
  claimOf: hubClaimOf,
  read
})

/** Webhooks of GitHub, by the secret that was entered with them. */
export const github = (settings: SecretSettings): Provider => provide(githubKind, settings)
