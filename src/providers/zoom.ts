import { momentAt, readObject, textAt } from "./body.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider } from "./provider.ts"
import { secretsSetting, type TimedSettings } from "./settings.ts"
import { hmacOf } from "./signed.ts"
import { smallJson, v0ClaimOf } from "./slack.ts"

const header = "x-zm-signature"

export const zoomKind = hmacKind<TimedSettings>({
  name: "zoom",
  title: "Zoom",
  settings: [secretsSetting("the app's secret tokens")],
  signsTime: true,
  // It tries 5 minutes later, 20 after that, and 60 after that.
  repeatsForMs: daysMs(1),
  waitsForMs: 3_000,
  retries429: false,
  words: {
    header,
    signed: "`v0:`, `x-zm-request-timestamp`, `:` and the body",
    id: "–",
    type: "`event`",
    at: "`event_ts`",
    subject: "`payload.object.uuid`, else `payload.object.id`"
  },
  claimOf: (request) => v0ClaimOf(request, header, "x-zm-request-timestamp"),
  read: (request) =>
    readObject(request, "Zoom", "`event`", (event) => ({
      type: textAt(event, "event"),
      at: momentAt(event, "ms", "event_ts"),
      subject:
        textAt(event, "payload", "object", "uuid") ?? textAt(event, "payload", "object", "id")
    })),
  handshake: (request, verified, _, keys) => {
    const json = smallJson(request)
    const plainToken = textAt(json, "payload", "plainToken")
    if (textAt(json, "event") !== "endpoint.url_validation" || plainToken === undefined)
      return undefined
    const verification = verified()
    const key = verification.ok ? keys[verification.secret] : undefined
    if (key === undefined) return undefined
    const encryptedToken = hmacOf("sha256", key, [plainToken]).toString("hex")
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ plainToken, encryptedToken })
    }
  }
})

/**
 * Webhooks of Zoom, by the secret tokens of the app. Zoom does not say whether it signs a repeat
 * anew, so without `toleranceMs` the signed time is not looked at.
 */
export const zoom = (settings: TimedSettings): Provider => provide(zoomKind, settings)
