import { createHmac, type KeyObject, timingSafeEqual, verify } from "node:crypto"
import { timeOf } from "./encoded.ts"
import type { ReceivedRequest, Verification, VerificationProblem } from "./provider.ts"

/** A request that is not from the sender, or not from now. */
export type Refusal = Extract<Verification, { readonly ok: false }>

/** What a request claims: these parts in this order have one of these signatures. */
export interface Claim {
  readonly ok: true
  readonly parts: ReadonlyArray<string | Uint8Array>
  readonly signatures: ReadonlyArray<Uint8Array>
  /** The signed time, ms. */
  readonly at?: number
}

export const refuse = (problem: VerificationProblem, text: string): Refusal => ({
  ok: false,
  problem,
  text
})

/** Maximum characters of a header that says who signed, and when: longer ones are not looked at. */
const maxHeaderChars = 4_096

/** Returns a header's value, or why there is none. */
export const headerOf = (
  { headers }: ReceivedRequest,
  name: string,
  kind: "signature" | "timestamp" = "signature"
): { readonly ok: true; readonly value: string } | Refusal => {
  const value = headers[name]
  if (value === undefined || value === "")
    return refuse(
      `${kind}-missing`,
      `The header ${name} is missing: the sender is another one, or a proxy removes the header.`
    )
  return value.length <= maxHeaderChars
    ? { ok: true, value }
    : refuse(`${kind}-malformed`, `The header ${name} is longer than ${maxHeaderChars} characters.`)
}

/** Refuses a signature of another form than the provider's. */
export const malformedSignature = (name: string, form: string): Refusal =>
  refuse("signature-malformed", `The header ${name} does not have the form ${form}.`)

/** Refuses a time of another form than the provider's. */
export const malformedTime = (name: string, form = "whole seconds since 1970"): Refusal =>
  refuse("timestamp-malformed", `The time in ${name} is not in ${form}.`)

/** Refuses a signature that matches no secret. */
export const mismatch = (secrets: number, known = "secret"): Refusal => {
  const matches =
    secrets === 1 ? `does not match the ${known}` : `matches none of the ${secrets} ${known}s`
  return refuse(
    "signature-mismatch",
    `The signature ${matches}: the ${known} belongs to another endpoint, or the body was changed on its way.`
  )
}

/** To the second below an hour: 5 min 1 s is more than the 5 min that are allowed. */
const spanText = (ms: number): string => {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  const rest = seconds % 60
  if (rest === 0 || seconds >= 3_600) return `${Math.round(seconds / 60)} min`
  return `${Math.floor(seconds / 60)} min ${rest} s`
}

/** Returns why a signed time is too far from now; undefined if it is near. */
export const untimely = (
  at: number | undefined,
  nowMs: number,
  toleranceMs: number | undefined
): Refusal | undefined => {
  if (at === undefined || toleranceMs === undefined) return undefined
  const off = nowMs - at
  if (Math.abs(off) <= toleranceMs) return undefined
  const allowed = `but only ${spanText(toleranceMs)} are allowed`
  return off > 0
    ? refuse(
        "timestamp-too-old",
        `It was signed ${spanText(off)} ago, ${allowed}: an old request is replayed, or a clock is wrong.`
      )
    : refuse(
        "timestamp-too-new",
        `It was signed ${spanText(-off)} in the future, ${allowed}: a clock is wrong.`
      )
}

/** Compares in a time that depends on the lengths only. */
export const isSame = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && timingSafeEqual(one, other)

/** Returns the HMAC of parts that follow each other. */
export const hmacOf = (
  algorithm: "sha1" | "sha256" | "sha512",
  key: KeyObject,
  parts: ReadonlyArray<string | Uint8Array>
): Buffer => {
  const made = createHmac(algorithm, key)
  for (const part of parts) made.update(part)
  return made.digest()
}

/**
 * Verifies by a secret that both sides know: the HMAC of each secret in turn is compared with each
 * signature. A time too far off is looked at last, so that what it says is the sender's own word.
 */
export const verifiedByHmac = (
  claim: Claim | Refusal,
  keys: ReadonlyArray<KeyObject>,
  nowMs: number,
  toleranceMs?: number,
  algorithm: "sha1" | "sha256" | "sha512" = "sha256"
): Verification => {
  if (!claim.ok) return claim
  const { at, parts, signatures } = claim
  const secret = keys.findIndex((key) => {
    const made = hmacOf(algorithm, key, parts)
    return signatures.some((signature) => isSame(signature, made))
  })
  if (secret === -1) return mismatch(keys.length)
  return untimely(at, nowMs, toleranceMs) ?? { ok: true, secret, ...(at !== undefined && { at }) }
}

/** How a sender signs its time and the body with a private key. */
export interface PublicKeyScheme {
  readonly header: string
  readonly timeHeader: string
  /** As `verify` of node:crypto takes it. */
  readonly algorithm: "sha256" | null
  /** Returns a signature's bytes; undefined for another form. */
  readonly decode: (text: string) => Uint8Array | undefined
  /** What a signature is written in, for the sentence about another one. */
  readonly form: string
}

/** Verifies by the sender's public keys, of which one may be about to replace the other. */
export const verifiedByPublicKey = (
  { algorithm, decode, form, header, timeHeader }: PublicKeyScheme,
  request: ReceivedRequest,
  keys: ReadonlyArray<KeyObject>,
  nowMs: number,
  toleranceMs?: number
): Verification => {
  const given = headerOf(request, header)
  if (!given.ok) return given
  const time = headerOf(request, timeHeader, "timestamp")
  if (!time.ok) return time
  const at = timeOf(time.value)
  if (at === undefined) return malformedTime(timeHeader)
  const signature = decode(given.value)
  if (signature === undefined) return malformedSignature(header, form)
  const message = Buffer.concat([Buffer.from(time.value), request.body])
  const secret = keys.findIndex((key) => verify(algorithm, message, key, signature))
  if (secret === -1) return mismatch(keys.length, "public key")
  return untimely(at, nowMs, toleranceMs) ?? { ok: true, secret, at }
}
