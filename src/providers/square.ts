import { momentAt, readObject, textAt } from "./body.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider } from "./provider.ts"
import { publicUrlSetting, type SecretSettings, secretsSetting, signedUrl } from "./settings.ts"
import { base64Claim } from "./shopify.ts"

export interface SquareSettings extends SecretSettings {
  /** The notification URL of the subscription: it is signed. */
  readonly publicUrl: string
}

const header = "x-square-hmacsha256-signature"

export const squareKind = hmacKind<SquareSettings>({
  name: "square",
  title: "Square",
  settings: [secretsSetting("the signature keys of the subscription"), publicUrlSetting],
  signsTime: false,
  // It tries for a day; events can be listed for 28.
  repeatsForMs: daysMs(28),
  waitsForMs: 10_000,
  retries429: true,
  words: {
    header,
    signed: "the URL and the body",
    id: "`event_id`",
    type: "`type`",
    at: "`created_at`",
    subject: "`data.id`"
  },
  claimOf: (request, { publicUrl }) =>
    base64Claim(request, header, [signedUrl(publicUrl, request.url), request.body]),
  read: (request) =>
    readObject(request, "Square", "`type`", (event) => ({
      id: textAt(event, "event_id"),
      type: textAt(event, "type"),
      at: momentAt(event, "s", "created_at"),
      subject: textAt(event, "data", "id")
    }))
})

/** Webhooks of Square, by the signature keys and the notification URL of the subscription. */
export const square = (settings: SquareSettings): Provider => provide(squareKind, settings)
