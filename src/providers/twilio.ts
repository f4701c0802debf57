import { createHash, createSecretKey } from "node:crypto"
import { readArray } from "./batch.ts"
import { bodyText, mediaTypeOf, momentAt, textAt, unreadable, wholeBody } from "./body.ts"
import { decoded, fromBase64, fromHex } from "./encoded.ts"
import { hoursMs, type ProviderKind, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest, Verification } from "./provider.ts"
import { publicUrlSetting, type SecretSettings, secretsSetting, signedUrl } from "./settings.ts"
import { headerOf, isSame, malformedSignature, mismatch, refuse, verifiedByHmac } from "./signed.ts"

export interface TwilioSettings extends SecretSettings {
  /** The URL that Twilio was given: it is signed. */
  readonly publicUrl: string
}

const header = "x-twilio-signature"

/** Twilio sometimes signs the URL with its port, and sometimes without. */
const urlsOf = (url: string): ReadonlyArray<string> => {
  const [, scheme = "", host = "", rest = ""] = /^(https?:\/\/)([^/?#]*)(.*)$/s.exec(url) ?? []
  const [, name = host, port] = /^(.*):(\d+)$/.exec(host) ?? []
  const usual = scheme === "https://" ? "443" : "80"
  return [`${scheme}${name}${rest}`, `${scheme}${name}:${port ?? usual}${rest}`]
}

/** Returns the fields of a form as Twilio signs them: sorted, each value once, without separators. */
const signedForm = (body: Uint8Array): string => {
  const form = new URLSearchParams(bodyText(body) ?? "")
  const names = [...new Set(form.keys())].sort()
  return names
    .flatMap((name) => [...new Set(form.getAll(name))].sort().map((value) => name + value))
    .join("")
}

const makeVerify = ({ publicUrl, secrets }: TwilioSettings) => {
  const keys = secrets.map((secret) => createSecretKey(Buffer.from(secret)))
  return (request: ReceivedRequest, nowMs: number): Verification => {
    const given = headerOf(request, header)
    if (!given.ok) return given
    const signatures = decoded([given.value], fromBase64)
    if (signatures.length === 0) return malformedSignature(header, "base64")
    const url = signedUrl(publicUrl, request.url)
    const digest = new URLSearchParams(url.slice(url.indexOf("?") + 1)).get("bodySHA256")
    if (digest !== null) {
      const wanted = fromHex(digest.toLowerCase())
      const made = createHash("sha256").update(request.body).digest()
      if (wanted === undefined || !isSame(wanted, made))
        return refuse(
          "body-mismatch",
          "The body is not the one whose SHA-256 is in the URL: it was changed on its way."
        )
    }
    const form = digest === null ? signedForm(request.body) : ""
    for (const one of urlsOf(url)) {
      const claim = { ok: true, signatures, parts: [one, form] } as const
      const found = verifiedByHmac(claim, keys, nowMs, undefined, "sha1")
      if (found.ok) return found
    }
    return mismatch(keys.length)
  }
}

const statusFields = [
  ["message", "MessageStatus", "MessageSid"],
  ["message", "SmsStatus", "MessageSid"],
  ["call", "CallStatus", "CallSid"],
  ["recording", "RecordingStatus", "RecordingSid"],
  ["verification", "VerificationStatus", "VerificationSid"]
] as const

const readForm = (request: ReceivedRequest): Reading => {
  const form = new URLSearchParams(bodyText(request.body) ?? "")
  const [kind, statusName, sidName] = statusFields.find(([, name]) => form.has(name)) ?? []
  const id = request.headers["i-twilio-idempotency-token"] || undefined
  return kind === undefined || statusName === undefined
    ? wholeBody(request, {
        id,
        type: form.get("EventType") || "webhook",
        subject: form.get("AccountSid") || undefined
      })
    : wholeBody(request, {
        id,
        type: `${kind}.${form.get(statusName) || "unknown"}`,
        subject: form.get(sidName) || undefined
      })
}

const read = (request: ReceivedRequest): Reading => {
  const type = mediaTypeOf(request)
  if (type === "application/x-www-form-urlencoded") return readForm(request)
  if (type !== "application/json" && type !== "application/cloudevents-batch+json")
    return unreadable("The body is neither a form nor JSON, as Twilio sends them.")
  return readArray(request, "Twilio", "`type`", (item) => ({
    id: textAt(item, "id"),
    type: textAt(item, "type"),
    at: momentAt(item, "s", "time"),
    subject: textAt(item, "data", "messageSid") ?? textAt(item, "data", "callSid")
  }))
}

export const twilioKind: ProviderKind<TwilioSettings> = {
  name: "twilio",
  title: "Twilio",
  settings: [secretsSetting("the account's auth tokens"), publicUrlSetting],
  // Messages and calls are tried once or, with a fragment of the URL that says so, for 15 s; Event
  // Streams tries for 4 hours.
  repeatsForMs: hoursMs(24),
  waitsForMs: 15_000,
  retries429: false,
  words: {
    header,
    signed: "the URL and the fields of a form, or the URL with the body's SHA-256 in it, by SHA-1",
    id: "`i-twilio-idempotency-token`; of Event Streams `id` of each item",
    type: "`message.` and `MessageStatus`, `call.` and `CallStatus`, …, else `EventType`, else the word `webhook`; of Event Streams `type`",
    at: "of Event Streams `time`",
    subject: "`MessageSid`, `CallSid`, …, else `AccountSid`"
  },
  make: (settings) => ({ verify: makeVerify(settings), read })
}

/** Webhooks of Twilio, by the account's auth tokens and the URL that Twilio was given. */
export const twilio = (settings: TwilioSettings): Provider => provide(twilioKind, settings)
