import { momentAt, readObject, textAt } from "./body.ts"
import { decoded, fromHex, pairsOf, timeOf } from "./encoded.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, minutesMs, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { secretsSetting, type TimedSettings } from "./settings.ts"
import {
  type Claim,
  headerOf,
  malformedSignature,
  malformedTime,
  type Refusal,
  refuse
} from "./signed.ts"

/**
 * Returns the claim of a header with a time and signatures, as `t=SECONDS,v1=HEX`: signed are the
 * time, a character, and the body.
 */
export const timedPairsClaim = (
  request: ReceivedRequest,
  header: string,
  {
    between,
    separator,
    signature,
    time
  }: Record<"between" | "separator" | "signature" | "time", string>
): Claim | Refusal => {
  const given = headerOf(request, header)
  if (!given.ok) return given
  const form = `${time}=SECONDS${separator}${signature}=HEX`
  const pairs = pairsOf(given.value, separator)
  if (pairs === undefined) return malformedSignature(header, form)
  const times = pairs.filter(([name]) => name === time)
  const [, text] = times[0] ?? []
  if (text === undefined)
    return refuse("timestamp-missing", `The header ${header} has no ${time}=.`)
  const at = times.length === 1 ? timeOf(text) : undefined
  if (at === undefined) return malformedTime(header)
  const texts = pairs.flatMap(([name, value]) => (name === signature ? [value] : []))
  const signatures = decoded(texts, fromHex)
  if (signatures.length === 0) return malformedSignature(header, form)
  return { ok: true, at, signatures, parts: [`${text}${between}`, request.body] }
}

const isThin = (event: object) => textAt(event, "object")?.startsWith("v2.") === true

const subjectOf = (event: object): string | undefined =>
  isThin(event)
    ? textAt(event, "related_object", "id")
    : (textAt(event, "data", "object", "customer") ??
      textAt(event, "data", "object", "customer", "id") ??
      textAt(event, "data", "object", "id"))

const read = (request: ReceivedRequest): Reading =>
  readObject(request, "Stripe", "`type`", (event) => ({
    id: textAt(event, "id"),
    type: textAt(event, "type"),
    at: momentAt(event, "s", "created"),
    subject: subjectOf(event)
  }))

const header = "stripe-signature"

export const stripeKind = hmacKind<TimedSettings>({
  name: "stripe",
  title: "Stripe",
  settings: [
    secretsSetting("the endpoint's signing secrets, whsec_…", (secret) =>
      /^(sk|rk|pk)_/.test(secret)
        ? "must have the signing secret of the endpoint (whsec_…), not an API key"
        : undefined
    )
  ],
  signsTime: true,
  toleranceMs: minutesMs(5),
  // An event can be listed, and sent again by hand, for 30 days.
  repeatsForMs: daysMs(30),
  retries429: true,
  varying: ["pending_webhooks"],
  words: {
    header,
    signed: "`t`, `.` and the body",
    id: "`id`",
    type: "`type`",
    at: "`created`",
    subject: "`data.object.customer`, else `data.object.id`; of a thin event `related_object.id`"
  },
  claimOf: (request) =>
    timedPairsClaim(request, header, { time: "t", signature: "v1", separator: ",", between: "." }),
  read
})

/** Webhooks of Stripe, by the signing secrets of the endpoint (`whsec_…`). */
export const stripe = (settings: TimedSettings): Provider => provide(stripeKind, settings)
