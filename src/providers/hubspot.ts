import { readArray } from "./batch.ts"
import { momentAt, textAt } from "./body.ts"
import { timeOf } from "./encoded.ts"
import { hmacKind } from "./hmac-kind.ts"
import { daysMs, minutesMs, provide } from "./kind.ts"
import type { Provider, ReceivedRequest } from "./provider.ts"
import { publicUrlSetting, secretsSetting, signedUrl, type TimedSettings } from "./settings.ts"
import { base64Claim } from "./shopify.ts"
import { type Claim, headerOf, malformedTime, type Refusal } from "./signed.ts"

export interface HubspotSettings extends TimedSettings {
  /** The target URL of the app's webhooks: it is signed. */
  readonly publicUrl: string
}

const header = "x-hubspot-signature-v3"
const timeHeader = "x-hubspot-request-timestamp"

/** HubSpot signs its URLs with these characters as they are, and all others as they are sent. */
const decodedEscapes = /%(3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi

const claimOf = (request: ReceivedRequest, { publicUrl }: HubspotSettings): Claim | Refusal => {
  const time = headerOf(request, timeHeader, "timestamp")
  const url = signedUrl(publicUrl, request.url).replace(decodedEscapes, decodeURIComponent)
  const claim = base64Claim(request, header, [
    `${request.method}${url}`,
    request.body,
    time.ok ? time.value : ""
  ])
  if (!claim.ok) return claim
  if (!time.ok) return time
  const at = timeOf(time.value, "ms")
  return at === undefined
    ? malformedTime(timeHeader, "whole milliseconds since 1970")
    : { ...claim, at }
}

/** HubSpot says that `eventId` alone may come twice for different events. */
const idOf = (item: unknown): string | undefined => {
  const eventId = textAt(item, "eventId")
  if (eventId === undefined) return undefined
  return ["portalId", "subscriptionId", "objectId", "occurredAt"]
    .flatMap((name) => textAt(item, name) ?? [])
    .concat(eventId)
    .join("-")
}

export const hubspotKind = hmacKind<HubspotSettings>({
  name: "hubspot",
  title: "HubSpot",
  settings: [secretsSetting("the app's client secrets"), publicUrlSetting],
  signsTime: true,
  toleranceMs: minutesMs(5),
  // It tries 10 times within a day.
  repeatsForMs: daysMs(2),
  waitsForMs: 5_000,
  retries429: true,
  varying: ["attemptNumber"],
  words: {
    header,
    signed: `the method, the URL, the body and \`${timeHeader}\``,
    id: "`portalId`, `subscriptionId`, `objectId`, `occurredAt` and `eventId`, with `-` between them",
    type: "`subscriptionType` of each item",
    at: "`occurredAt`",
    subject: "`objectId`"
  },
  claimOf,
  read: (request) =>
    readArray(request, "HubSpot", "`subscriptionType`", (item) => ({
      id: idOf(item),
      type: textAt(item, "subscriptionType"),
      at: momentAt(item, "ms", "occurredAt"),
      subject: textAt(item, "objectId")
    }))
})

/** Webhooks of HubSpot by its third signature, with the client secrets of the app. */
export const hubspot = (settings: HubspotSettings): Provider => provide(hubspotKind, settings)
