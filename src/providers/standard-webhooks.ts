import { createPublicKey, createSecretKey, type KeyObject, verify as verifyWith } from "node:crypto"
import { bodyJson, mediaTypeOf, momentAt, textAt, unreadable, wholeBody } from "./body.ts"
import { decoded, fromBase64, timeOf } from "./encoded.ts"
import { daysMs, minutesMs, type ProviderKind, type ProviderParts, provide } from "./kind.ts"
import type { Provider, Reading, ReceivedRequest, Verification } from "./provider.ts"
import { secretsSetting, toleranceSetting } from "./settings.ts"
import {
  type Claim,
  headerOf,
  hmacOf,
  isSame,
  malformedSignature,
  malformedTime,
  mismatch,
  type Refusal,
  untimely
} from "./signed.ts"

export interface StandardWebhooksSettings {
  /** Secrets (`whsec_…`, or their base64 alone) and public keys (`whpk_…`). */
  readonly secrets: ReadonlyArray<string>
  /** (Default: 300,000) */
  readonly toleranceMs?: number
}

/** DER of an Ed25519 public key up to its bytes. */
const ed25519PublicHeader = Buffer.from("302a300506032b6570032100", "hex")

/** Returns an Ed25519 public key of its 32 bytes; undefined for other lengths. */
export const ed25519PublicKey = (bytes: Uint8Array): KeyObject | undefined =>
  bytes.length === 32
    ? createPublicKey({
        key: Buffer.concat([ed25519PublicHeader, bytes]),
        format: "der",
        type: "spki"
      })
    : undefined

const keyOf = (secret: string): KeyObject | undefined => {
  if (secret.startsWith("whpk_")) {
    const bytes = fromBase64(secret.slice("whpk_".length))
    return bytes === undefined ? undefined : ed25519PublicKey(bytes)
  }
  const bytes = fromBase64(secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret)
  return bytes === undefined ? undefined : createSecretKey(bytes)
}

const secretProblem = (secret: string): string | undefined => {
  if (secret.startsWith("whsk_"))
    return "must have the public key (whpk_…) instead of the private one (whsk_…)"
  return keyOf(secret) === undefined
    ? "must have whsec_ and base64, or whpk_ and the base64 of 32 bytes"
    : undefined
}

/** Each signature of a public key costs a verification: more of them are not looked at. */
const maxSignatures = 16

interface StandardClaim extends Omit<Claim, "signatures"> {
  /** HMACs, `v1`. */
  readonly signatures: ReadonlyArray<Uint8Array>
  /** Ed25519, `v1a`. */
  readonly publicSignatures: ReadonlyArray<Uint8Array>
}

const claimOf = (request: ReceivedRequest): StandardClaim | Refusal => {
  const prefix =
    request.headers["webhook-signature"] === undefined &&
    request.headers["svix-signature"] !== undefined
      ? "svix"
      : "webhook"
  const header = `${prefix}-signature`
  const given = headerOf(request, header)
  if (!given.ok) return given
  const id = headerOf(request, `${prefix}-id`)
  if (!id.ok) return id
  const time = headerOf(request, `${prefix}-timestamp`, "timestamp")
  if (!time.ok) return time
  const at = timeOf(time.value)
  if (at === undefined) return malformedTime(`${prefix}-timestamp`)
  const all = given.value.split(" ")
  const of = (version: string) =>
    decoded(
      all.flatMap((one) => (one.startsWith(`${version},`) ? [one.slice(version.length + 1)] : [])),
      fromBase64
    )
  const [signatures, publicSignatures] = [of("v1"), of("v1a")]
  const count = signatures.length + publicSignatures.length
  if (count === 0 || count > maxSignatures)
    return malformedSignature(header, "v1,BASE64 with spaces between several")
  return {
    ok: true,
    at,
    signatures,
    publicSignatures,
    parts: [`${id.value}.${time.value}.`, request.body]
  }
}

const fits = (key: KeyObject, { parts, publicSignatures, signatures }: StandardClaim): boolean => {
  if (key.type === "secret") {
    if (signatures.length === 0) return false
    const made = hmacOf("sha256", key, parts)
    return signatures.some((signature) => isSame(signature, made))
  }
  if (publicSignatures.length === 0) return false
  const message = Buffer.concat(parts.map((part) => Buffer.from(part)))
  return publicSignatures.some((signature) => verifyWith(null, message, key, signature))
}

/** Returns what verifies by Standard Webhooks. */
export const makeStandardVerify = ({
  secrets,
  toleranceMs = minutesMs(5)
}: StandardWebhooksSettings) => {
  const keys = secrets.flatMap((secret) => keyOf(secret) ?? [])
  return (request: ReceivedRequest, nowMs: number): Verification => {
    const claim = claimOf(request)
    if (!claim.ok) return claim
    const secret = keys.findIndex((key) => fits(key, claim))
    if (secret === -1) return mismatch(keys.length)
    const { at } = claim
    return untimely(at, nowMs, toleranceMs) ?? { ok: true, secret, ...(at !== undefined && { at }) }
  }
}

const idOf = ({ headers }: ReceivedRequest): string | undefined =>
  headers["webhook-id"] || headers["svix-id"] || undefined

const jsonType = /^application\/(.+\+)?json$/

const readStandard = (request: ReceivedRequest): Reading => {
  const id = idOf(request)
  const json = bodyJson(request.body)
  if (json === undefined && jsonType.test(mediaTypeOf(request)))
    return unreadable("The body is not JSON, although its content type says so.")
  return wholeBody(request, {
    id,
    type: textAt(json, "type") ?? textAt(json, "eventType") ?? "webhook",
    at: momentAt(json, "s", "timestamp"),
    subject: undefined
  })
}

/** The body is the user's own: it is not looked into. */
const readPetrel = (request: ReceivedRequest): Reading => {
  const type = request.headers["webhook-event-type"]
  return type === undefined || type === ""
    ? unreadable("The request has no type: Petrel has it in the header webhook-event-type.")
    : wholeBody(request, { id: idOf(request), type })
}

const standardSettings = [
  secretsSetting("the endpoint's secrets (whsec_…) or public keys (whpk_…)", secretProblem),
  toleranceSetting
]

const withRead =
  (read: (request: ReceivedRequest) => Reading) =>
  (settings: StandardWebhooksSettings): ProviderParts => ({
    verify: makeStandardVerify(settings),
    read
  })

const signed = "`webhook-id`, `.`, `webhook-timestamp`, `.` and the body"

export const standardWebhooksKind: ProviderKind<StandardWebhooksSettings> = {
  name: "standard-webhooks",
  title: "Standard Webhooks",
  settings: standardSettings,
  toleranceMs: minutesMs(5),
  // The standard says nothing of it. Svix, which most senders use, keeps payloads for 90 days.
  repeatsForMs: daysMs(90),
  // The standard asks senders for 15 to 30 s.
  waitsForMs: 15_000,
  retries429: true,
  words: {
    header: "webhook-signature",
    signed,
    id: "`webhook-id`",
    type: "`type`, else `eventType`, else the word `webhook`",
    at: "`timestamp`",
    subject: "–"
  },
  make: withRead(readStandard)
}

export const petrelKind: ProviderKind<StandardWebhooksSettings> = {
  name: "petrel",
  title: "Petrel",
  settings: standardSettings,
  toleranceMs: minutesMs(5),
  // HISTORY and EVENTS are kept for 30 days, and replays end a day later.
  repeatsForMs: daysMs(31),
  // Unless the endpoint says otherwise.
  waitsForMs: 30_000,
  retries429: true,
  words: {
    header: "webhook-signature",
    signed,
    id: "`webhook-id`",
    type: "`webhook-event-type`",
    at: "–",
    subject: "–"
  },
  make: withRead(readPetrel)
}

/**
 * Webhooks of whoever follows Standard Webhooks, or sends through Svix: HMAC (`v1`) and Ed25519
 * (`v1a`).
 */
export const standardWebhooks = (settings: StandardWebhooksSettings): Provider =>
  provide(standardWebhooksKind, settings)

/** Webhooks of Petrel with its usual headers, signed as `--sign standard` or `standard-ed25519`. */
export const petrel = (settings: StandardWebhooksSettings): Provider =>
  provide(petrelKind, settings)
