import { readItems } from "./batch.ts"
import { bodyJson, momentAt, textAt, unreadable, valueAt } from "./body.ts"
import { hubClaimOf } from "./github.ts"
import { hmacKind } from "./hmac-kind.ts"
import { itemsUnder } from "./json-items.ts"
import { daysMs, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest } from "./provider.ts"
import { type SecretSettings, secretsSetting, textSetting } from "./settings.ts"
import { isSame } from "./signed.ts"

export interface MetaSettings extends SecretSettings {
  /** The verify token that was entered with the callback URL. Without it no URL can be set up. */
  readonly verifyToken?: string
}

/** Returns the field that all changes of an entry are of; undefined if they differ. */
const fieldOf = (entry: unknown): string | undefined => {
  const changes = valueAt(entry, "changes")
  if (!Array.isArray(changes))
    return Array.isArray(valueAt(entry, "messaging")) ? "messages" : undefined
  const fields = new Set(changes.map((change) => textAt(change, "field")))
  return fields.size === 1 ? [...fields][0] : undefined
}

/** Returns the id of the only message of an entry, of Messenger, Instagram or WhatsApp. */
const messageIdOf = (entry: unknown): string | undefined => {
  const messaging = valueAt(entry, "messaging")
  if (Array.isArray(messaging))
    return messaging.length === 1 ? textAt(messaging[0], "message", "mid") : undefined
  const changes = valueAt(entry, "changes")
  if (!Array.isArray(changes) || changes.length !== 1) return undefined
  const messages = valueAt(changes[0], "value", "messages")
  return Array.isArray(messages) && messages.length === 1 ? textAt(messages[0], "id") : undefined
}

const read = ({ body }: ReceivedRequest): Reading => {
  const json = bodyJson(body)
  const [object, entries] = [textAt(json, "object"), valueAt(json, "entry")]
  if (object === undefined || !Array.isArray(entries))
    return unreadable(
      "The body is not a JSON object with `object` and `entry`, as Meta sends them."
    )
  return readItems(entries, itemsUnder(body, "entry"), "Meta", "`object`", (entry) => {
    const field = fieldOf(entry)
    const id = textAt(entry, "id")
    return {
      id: messageIdOf(entry),
      type: field === undefined ? object : `${object}.${field}`,
      // Messenger has ms, all others have s.
      at: momentAt(entry, Number(textAt(entry, "time")) > 100_000_000_000 ? "ms" : "s", "time"),
      subject: id
    }
  })
}

export const metaKind = hmacKind<MetaSettings>({
  name: "meta",
  title: "Meta",
  settings: [
    secretsSetting("the app secrets"),
    textSetting("verifyToken", false, "the verify token that was entered with the callback URL")
  ],
  signsTime: false,
  // It tries for 36 hours, WhatsApp for 7 days; a day is added for what is late.
  repeatsForMs: daysMs(8),
  waitsForMs: 5_000,
  retries429: true,
  words: {
    header: "x-hub-signature-256",
    signed: "the body",
    id: "the id of the message, if an entry has one message",
    type: "`object`, `.` and the `field` of an entry's changes (`messages` for Messenger)",
    at: "`time` of an entry",
    subject: "`id` of an entry"
  },
  claimOf: hubClaimOf,
  read,
  handshake: ({ method, url }, _, { verifyToken }) => {
    if (method !== "GET" || verifyToken === undefined) return undefined
    const query = new URLSearchParams(url.slice(url.indexOf("?") + 1))
    const challenge = query.get("hub.challenge")
    const given = Buffer.from(query.get("hub.verify_token") ?? "")
    if (query.get("hub.mode") !== "subscribe" || challenge === null) return undefined
    if (challenge.length > 1_000 || !isSame(given, Buffer.from(verifyToken))) return undefined
    return {
      status: 200,
      headers: { "content-type": "text/plain", "x-content-type-options": "nosniff" },
      body: challenge
    }
  }
})

/** Webhooks of Meta: Facebook, Instagram, Messenger, WhatsApp, by the app's secrets. */
export const meta = (settings: MetaSettings): Provider => provide(metaKind, settings)
