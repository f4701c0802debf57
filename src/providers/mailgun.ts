import {
  bodyJson,
  bodyText,
  mediaTypeOf,
  momentAt,
  readObject,
  textAt,
  unreadable,
  wholeBody
} from "./body.ts"
import { decoded, fromHex, timeOf } from "./encoded.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { secretsSetting, type TimedSettings } from "./settings.ts"
import { type Claim, malformedSignature, type Refusal, refuse } from "./signed.ts"

const formType = "application/x-www-form-urlencoded"

const formOf = ({ body }: ReceivedRequest): URLSearchParams =>
  new URLSearchParams(bodyText(body) ?? "")

const maxFieldChars = 200

const claimOf = (request: ReceivedRequest): Claim | Refusal => {
  const form = mediaTypeOf(request) === formType ? formOf(request) : undefined
  const json = form === undefined ? bodyJson(request.body) : undefined
  const field = (name: string): string =>
    (form === undefined ? textAt(json, "signature", name) : form.get(name)) ?? ""
  const [signature, timestamp, token] = [field("signature"), field("timestamp"), field("token")]
  if (signature === "" || token === "")
    return refuse(
      "signature-missing",
      "The body has no `signature` and `token`, as Mailgun sends them."
    )
  if (timestamp === "") return refuse("timestamp-missing", "The body has no `timestamp`.")
  const at = timeOf(timestamp)
  if (at === undefined)
    return refuse("timestamp-malformed", "The body's `timestamp` is not in whole seconds.")
  const signatures =
    signature.length + token.length > maxFieldChars ? [] : decoded([signature], fromHex)
  if (signatures.length === 0) return malformedSignature("signature of the body", "HEX")
  return { ok: true, at, signatures, parts: [timestamp, token] }
}

const readForm = (request: ReceivedRequest): Reading => {
  const form = formOf(request)
  return form.has("signature")
    ? wholeBody(request, {
        type: form.get("event") || "message",
        id: form.get("Message-Id") || undefined,
        subject: form.get("recipient") || undefined
      })
    : unreadable("The form has no `signature`, as Mailgun sends them.")
}

export const mailgunKind = hmacKind<TimedSettings>({
  name: "mailgun",
  title: "Mailgun",
  settings: [secretsSetting("the account's HTTP webhook signing keys")],
  signsTime: true,
  // It tries for 8 hours; events can be listed, and so fetched, for 3 days.
  repeatsForMs: daysMs(3),
  retries429: true,
  varying: ["signature"],
  words: {
    header: "`signature` in the body",
    signed: "`timestamp` and `token`, not the body",
    id: "`event-data.id`; of a form `Message-Id`",
    type: "`event-data.event`; of a form `event`, else the word `message`",
    at: "`event-data.timestamp`",
    subject: "`event-data.message.headers.message-id`; of a form `recipient`"
  },
  claimOf,
  read: (request) =>
    mediaTypeOf(request) === formType
      ? readForm(request)
      : readObject(request, "Mailgun", "`event-data.event`", (json) => ({
          id: textAt(json, "event-data", "id"),
          type: textAt(json, "event-data", "event"),
          at: momentAt(json, "s", "event-data", "timestamp"),
          subject: textAt(json, "event-data", "message", "headers", "message-id")
        }))
})

/**
 * Webhooks and forwarded messages of Mailgun, by the account's signing keys. Only a time and a
 * token are signed, not what a request says. Without `toleranceMs` the time is not looked at, as
 * Mailgun does not say whether it signs a repeat anew.
 */
export const mailgun = (settings: TimedSettings): Provider => provide(mailgunKind, settings)
