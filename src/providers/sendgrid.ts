import { createPublicKey, type KeyObject } from "node:crypto"
import { readArray } from "./batch.ts"
import { momentAt, textAt } from "./body.ts"
import { fromBase64 } from "./encoded.ts"
import { daysMs, type ProviderKind, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { secretsSetting, type TimedSettings, toleranceSetting } from "./settings.ts"
import { type PublicKeyScheme, verifiedByPublicKey } from "./signed.ts"

const header = "x-twilio-email-event-webhook-signature"
const timeHeader = "x-twilio-email-event-webhook-timestamp"

const keyOf = (secret: string): KeyObject | undefined => {
  const der = fromBase64(secret)
  if (der === undefined) return undefined
  try {
    const key = createPublicKey({ key: der, format: "der", type: "spki" })
    return key.asymmetricKeyType === "ec" ? key : undefined
  } catch {
    return undefined
  }
}

const scheme: PublicKeyScheme = {
  header,
  timeHeader,
  algorithm: "sha256",
  form: "base64",
  decode: fromBase64
}

const makeVerify = ({ secrets, toleranceMs }: TimedSettings) => {
  const keys = secrets.flatMap((secret) => keyOf(secret) ?? [])
  return (request: ReceivedRequest, nowMs: number) =>
    verifiedByPublicKey(scheme, request, keys, nowMs, toleranceMs)
}

/** What follows names a server that the message has passed, so it differs between its events. */
const messageOf = (id: string | undefined): string | undefined =>
  id?.replace(/\.(?:filter|recv).*$/s, "")

const read = (request: ReceivedRequest): Reading =>
  readArray(request, "SendGrid", "`event`", (item) => ({
    id: textAt(item, "sg_event_id"),
    type: textAt(item, "event"),
    at: momentAt(item, "s", "timestamp"),
    subject: messageOf(textAt(item, "sg_message_id"))
  }))

export const sendgridKind: ProviderKind<TimedSettings> = {
  name: "sendgrid",
  title: "SendGrid",
  settings: [
    secretsSetting("the verification key of the signed event webhook", (secret) =>
      keyOf(secret) === undefined
        ? "must be a public key in base64, as SendGrid shows it"
        : undefined
    ),
    toleranceSetting
  ],
  // It tries for a day.
  repeatsForMs: daysMs(2),
  retries429: true,
  words: {
    header,
    signed: `\`${timeHeader}\` and the body, by ECDSA P-256`,
    id: "`sg_event_id` of each item",
    type: "`event`",
    at: "`timestamp`",
    subject: "`sg_message_id` up to `.filter` or `.recv`"
  },
  make: (settings) => ({ verify: makeVerify(settings), read })
}

/**
 * The event webhook of SendGrid, by its verification key. SendGrid does not say whether it signs a
 * repeat anew, so without `toleranceMs` the signed time is not looked at.
 */
export const sendgrid = (settings: TimedSettings): Provider => provide(sendgridKind, settings)
