import { momentAt, readObject, textAt } from "./body.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider } from "./provider.ts"
import { secretsSetting, type TimedSettings } from "./settings.ts"
import { timedPairsClaim } from "./stripe.ts"

const header = "paddle-signature"

export const paddleKind = hmacKind<TimedSettings>({
  name: "paddle",
  title: "Paddle",
  settings: [secretsSetting("the secret keys of the notification destination, pdl_ntfset_…")],
  signsTime: true,
  // What Paddle's own libraries allow.
  toleranceMs: 5_000,
  // It tries for 3 days; a notification can be replayed, by hand, for 90.
  repeatsForMs: daysMs(90),
  waitsForMs: 5_000,
  retries429: true,
  varying: ["notification_id"],
  words: {
    header,
    signed: "`ts`, `:` and the body",
    id: "`event_id`",
    type: "`event_type`",
    at: "`occurred_at`",
    subject: "`data.customer_id`, else `data.id`"
  },
  claimOf: (request) =>
    timedPairsClaim(request, header, { time: "ts", signature: "h1", separator: ";", between: ":" }),
  read: (request) =>
    readObject(request, "Paddle", "`event_type`", (event) => ({
      id: textAt(event, "event_id"),
      type: textAt(event, "event_type"),
      at: momentAt(event, "s", "occurred_at"),
      subject: textAt(event, "data", "customer_id") ?? textAt(event, "data", "id")
    }))
})

/** Webhooks of Paddle Billing, by the secret keys of the notification destination. */
export const paddle = (settings: TimedSettings): Provider => provide(paddleKind, settings)
