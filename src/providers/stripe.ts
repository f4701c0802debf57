import { createSecretKey } from "node:crypto"
import { momentAt, readObject, textAt } from "./body.ts"
import { decoded, fromHex, pairsOf, timeOf } from "./encoded.ts"
import { daysMs, minutesMs, type ProviderKind, provide } from "./kind.ts"
import type { Provider, ReceivedRequest } from "./provider.ts"
import { secretsSetting, toleranceSetting } from "./settings.ts"
import {
  type Claim,
  headerOf,
  malformedSignature,
  malformedTime,
  type Refusal,
  refuse,
  verifiedByHmac
} from "./signed.ts"

export interface StripeSettings {
  /** Signing secrets of the endpoint (`whsec_…`), as its page shows them. */
  readonly secrets: ReadonlyArray<string>
  /** (Default: 300,000) */
  readonly toleranceMs?: number
}

const header = "stripe-signature"

const claimOf = (request: ReceivedRequest): Claim | Refusal => {
  const given = headerOf(request, header)
  if (!given.ok) return given
  const pairs = pairsOf(given.value, ",")
  if (pairs === undefined) return malformedSignature(header, "t=SECONDS,v1=HEX")
  const times = pairs.filter(([name]) => name === "t")
  const [, time] = times[0] ?? []
  if (time === undefined) return refuse("timestamp-missing", `The header ${header} has no t=.`)
  const at = times.length === 1 ? timeOf(time) : undefined
  if (at === undefined) return malformedTime(header)
  const texts = pairs.flatMap(([name, value]) => (name === "v1" ? [value] : []))
  const signatures = decoded(texts, fromHex)
  if (signatures.length === 0) return malformedSignature(header, "t=SECONDS,v1=HEX")
  return { ok: true, at, signatures, parts: [`${time}.`, request.body] }
}

const isThin = (event: object) => textAt(event, "object")?.startsWith("v2.") === true

export const stripeKind: ProviderKind<StripeSettings> = {
  name: "stripe",
  title: "Stripe",
  settings: [
    secretsSetting("the endpoint's signing secrets, whsec_…", (secret) =>
      /^(sk|rk|pk)_/.test(secret)
        ? "must have the signing secret of the endpoint (whsec_…), not an API key"
        : undefined
    ),
    toleranceSetting
  ],
  toleranceMs: minutesMs(5),
  // An event can be listed, and sent again by hand, for 30 days.
  repeatsForMs: daysMs(30),
  retries429: true,
  words: {
    header,
    signed: "`t`, `.` and the body",
    id: "`id`",
    type: "`type`",
    at: "`created`",
    subject: "`data.object.customer`, else `data.object.id`; of a thin event `related_object.id`"
  },
  make: ({ secrets, toleranceMs = minutesMs(5) }) => {
    const keys = secrets.map((secret) => createSecretKey(Buffer.from(secret)))
    return {
      verify: (request, nowMs) => verifiedByHmac(claimOf(request), keys, nowMs, toleranceMs),
      read: (request) =>
        readObject(request, "Stripe", "`type`", (event) => ({
          id: textAt(event, "id"),
          type: textAt(event, "type"),
          at: momentAt(event, "s", "created"),
          subject: isThin(event)
            ? textAt(event, "related_object", "id")
            : (textAt(event, "data", "object", "customer") ??
              textAt(event, "data", "object", "customer", "id") ??
              textAt(event, "data", "object", "id"))
        }))
    }
  }
}

/** Webhooks of Stripe, by the signing secrets of the endpoint. */
export const stripe = (settings: StripeSettings): Provider => provide(stripeKind, settings)
