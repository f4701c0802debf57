import { momentAt, readObject, textAt, valueAt } from "./body.ts"
import { fromHex } from "./encoded.ts"
import { hoursMs, type ProviderKind, provide } from "./kind.ts"
import type { HandshakeAnswer, Provider, Reading, ReceivedRequest } from "./provider.ts"
import { secretsSetting, type TimedSettings, toleranceSetting } from "./settings.ts"
import { type PublicKeyScheme, verifiedByPublicKey } from "./signed.ts"
import { smallJson } from "./slack.ts"
import { ed25519PublicKey } from "./standard-webhooks.ts"

const header = "x-signature-ed25519"
const timeHeader = "x-signature-timestamp"

const keyOf = (secret: string) => {
  const bytes = fromHex(secret.toLowerCase())
  return bytes === undefined ? undefined : ed25519PublicKey(bytes)
}

const scheme: PublicKeyScheme = {
  header,
  timeHeader,
  algorithm: null,
  form: "128 hexadecimal digits",
  decode: (text) => {
    const signature = fromHex(text)
    return signature?.length === 64 ? signature : undefined
  }
}

const makeVerify = ({ secrets, toleranceMs }: TimedSettings) => {
  const keys = secrets.flatMap((secret) => keyOf(secret) ?? [])
  return (request: ReceivedRequest, nowMs: number) =>
    verifiedByPublicKey(scheme, request, keys, nowMs, toleranceMs)
}

const interactionTypes = new Map([
  [2, "APPLICATION_COMMAND"],
  [3, "MESSAGE_COMPONENT"],
  [4, "APPLICATION_COMMAND_AUTOCOMPLETE"],
  [5, "MODAL_SUBMIT"]
])

const read = (request: ReceivedRequest): Reading =>
  readObject(request, "Discord", "`event.type`, or `type` of an interaction", (json) => {
    const data = valueAt(json, "event", "data")
    return {
      id: valueAt(json, "event") === undefined ? textAt(json, "id") : undefined,
      type: textAt(json, "event", "type") ?? interactionTypes.get(Number(textAt(json, "type"))),
      at: momentAt(json, "s", "event", "timestamp"),
      subject: textAt(data, "user", "id") ?? textAt(data, "user_id") ?? textAt(json, "channel_id")
    }
  })

/** An endpoint of events is asked with type 0, one of interactions with type 1; events have `event`. */
const pong = (json: unknown): HandshakeAnswer | undefined => {
  if (valueAt(json, "event") !== undefined) return undefined
  const type = valueAt(json, "type")
  if (type === 0) return { status: 204, headers: { "content-type": "application/json" }, body: "" }
  return type === 1
    ? { status: 200, headers: { "content-type": "application/json" }, body: '{"type":1}' }
    : undefined
}

export const discordKind: ProviderKind<TimedSettings> = {
  name: "discord",
  title: "Discord",
  settings: [
    secretsSetting("the application's public key", (secret) =>
      keyOf(secret) === undefined ? "must be a public key of 64 hexadecimal digits" : undefined
    ),
    toleranceSetting
  ],
  // It tries for 10 minutes.
  repeatsForMs: hoursMs(1),
  waitsForMs: 3_000,
  retries429: false,
  wantsNoContent: true,
  words: {
    header,
    signed: `\`${timeHeader}\` and the body, by Ed25519`,
    id: "`id` of an interaction",
    type: "`event.type`; of an interaction the name of its `type`",
    at: "`event.timestamp`",
    subject: "`event.data.user.id` or `event.data.user_id`; of an interaction `channel_id`"
  },
  make: (settings) => {
    const verify = makeVerify(settings)
    return {
      verify,
      read,
      handshake: (request, nowMs) => {
        const answer = pong(smallJson(request))
        return answer !== undefined && verify(request, nowMs).ok ? answer : undefined
      }
    }
  }
}

/**
 * Webhook events and interactions of Discord, by the application's public key. Discord does not say
 * whether it signs a repeat anew, so without `toleranceMs` the signed time is not looked at.
 */
export const discord = (settings: TimedSettings): Provider => provide(discordKind, settings)
