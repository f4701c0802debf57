import { bodyJson, momentAt, readObject, textAt, valueAt } from "./body.ts"
import { decoded, fromHex } from "./encoded.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, minutesMs, provide } from "./kind.ts"
import type { Provider, ReceivedRequest } from "./provider.ts"
import { secretsSetting, type TimedSettings } from "./settings.ts"
import { type Claim, headerOf, malformedSignature, type Refusal, refuse } from "./signed.ts"

const header = "linear-signature"

const claimOf = (request: ReceivedRequest): Claim | Refusal => {
  const given = headerOf(request, header)
  if (!given.ok) return given
  const signatures = decoded([given.value], fromHex)
  if (signatures.length === 0) return malformedSignature(header, "HEX")
  const at = valueAt(bodyJson(request.body), "webhookTimestamp")
  const known = typeof at === "number" && Number.isSafeInteger(at) && at >= 0 ? at : undefined
  if (known === undefined)
    return refuse("timestamp-missing", "The body has no time in `webhookTimestamp`, in ms.")
  return { ok: true, at: known, signatures, parts: [request.body] }
}

const typeOf = (event: object): string | undefined => {
  const [type, action] = [textAt(event, "type"), textAt(event, "action")]
  return type === undefined || action === undefined ? type : `${type}.${action}`
}

export const linearKind = hmacKind<TimedSettings>({
  name: "linear",
  title: "Linear",
  settings: [secretsSetting("the webhook's signing secrets, lin_wh_…")],
  signsTime: true,
  toleranceMs: minutesMs(1),
  // It tries after a minute, an hour and 6 hours.
  repeatsForMs: daysMs(1),
  waitsForMs: 5_000,
  retries429: true,
  varying: ["webhookTimestamp"],
  words: {
    header,
    signed: "the body, with the time in `webhookTimestamp`",
    id: "`linear-delivery`",
    type: "`type`, `.` and `action`",
    at: "`createdAt`",
    subject: "`data.id`"
  },
  claimOf,
  read: (request) =>
    readObject(request, "Linear", "`type`", (event) => ({
      id: request.headers["linear-delivery"] || undefined,
      type: typeOf(event),
      at: momentAt(event, "s", "createdAt"),
      subject: textAt(event, "data", "id")
    }))
})

/** Webhooks of Linear, by the signing secrets of the webhook. */
export const linear = (settings: TimedSettings): Provider => provide(linearKind, settings)
