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
import { daysMs, minutesMs, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { secretsSetting, type TimedSettings } from "./settings.ts"
import { type Claim, headerOf, malformedSignature, malformedTime, type Refusal } from "./signed.ts"

const header = "x-slack-signature"

/**
 * Returns the claim of Slack's form: `v0=` and the HMAC of `v0`, the time and the body with colons
 * between them.
 */
export const v0ClaimOf = (
  request: ReceivedRequest,
  signatureHeader: string,
  timeHeader: string
): Claim | Refusal => {
  const given = headerOf(request, signatureHeader)
  if (!given.ok) return given
  const time = headerOf(request, timeHeader, "timestamp")
  if (!time.ok) return time
  const at = timeOf(time.value)
  if (at === undefined) return malformedTime(timeHeader)
  const signatures = given.value.startsWith("v0=") ? decoded([given.value.slice(3)], fromHex) : []
  if (signatures.length === 0) return malformedSignature(signatureHeader, "v0=HEX")
  return { ok: true, at, signatures, parts: [`v0:${time.value}:`, request.body] }
}

const readForm = (request: ReceivedRequest): Reading => {
  const form = new URLSearchParams(bodyText(request.body) ?? "")
  const payload = form.get("payload")
  if (payload !== null) {
    const json = bodyJson(Buffer.from(payload))
    const type = textAt(json, "type")
    return type === undefined
      ? unreadable("The field `payload` is not a JSON object with a `type`, as Slack sends them.")
      : wholeBody(request, { type, subject: textAt(json, "channel", "id") })
  }
  const command = form.get("command") ?? ""
  return command === ""
    ? unreadable("The form has neither `payload` nor `command`, of which Slack sends one.")
    : wholeBody(request, { type: command, subject: form.get("channel_id") || undefined })
}

const read = (request: ReceivedRequest): Reading =>
  mediaTypeOf(request) === "application/x-www-form-urlencoded"
    ? readForm(request)
    : readObject(request, "Slack", "`event.type`", (json) => ({
        id: textAt(json, "event_id"),
        type: textAt(json, "event", "type") ?? textAt(json, "type"),
        at: momentAt(json, "s", "event_time"),
        subject:
          textAt(json, "event", "channel") ??
          textAt(json, "event", "channel", "id") ??
          textAt(json, "event", "user")
      }))

/** Returns the JSON of a body so small that it may be a challenge: others are not parsed for it. */
export const smallJson = ({ body, method }: ReceivedRequest): unknown =>
  method === "POST" && body.length <= 4_096 ? bodyJson(body) : undefined

export const slackKind = hmacKind<TimedSettings>({
  name: "slack",
  title: "Slack",
  settings: [secretsSetting("the app's signing secrets")],
  signsTime: true,
  toleranceMs: minutesMs(5),
  // It tries for an hour and, with delayed events, for a day.
  repeatsForMs: daysMs(1),
  waitsForMs: 3_000,
  retries429: true,
  words: {
    header,
    signed: "`v0:`, `x-slack-request-timestamp`, `:` and the body",
    id: "`event_id`",
    type: "`event.type`; of an interaction `payload.type`, of a slash command the command",
    at: "`event_time`",
    subject: "`event.channel`, else `event.user`"
  },
  claimOf: (request) => v0ClaimOf(request, header, "x-slack-request-timestamp"),
  read,
  handshake: (request, verified) => {
    const json = smallJson(request)
    const challenge = textAt(json, "challenge")
    if (textAt(json, "type") !== "url_verification" || challenge === undefined) return undefined
    return verified().ok
      ? { status: 200, headers: { "content-type": "text/plain" }, body: challenge }
      : undefined
  }
})

/** Events, interactions and commands of Slack, by the signing secrets of the app. */
export const slack = (settings: TimedSettings): Provider => provide(slackKind, settings)
