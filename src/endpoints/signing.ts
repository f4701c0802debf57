import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomBytes,
  sign as signWith
} from "node:crypto"
import { Effect, Schema } from "effect"
import type { Secret } from "../domain/endpoint.ts"
import type { HeaderNames } from "../domain/header-names.ts"
import { githubHeaderNames, usualHeaderNames, usualStripeHeader } from "../domain/header-names.ts"
import type { Scheme } from "../domain/settings/endpoint-table.ts"
import { hmac, hmacKey } from "./hmac.ts"

/** A secret is invalid for its scheme. The message says why and never shows the secret. */
export class InvalidSecret extends Schema.TaggedError<InvalidSecret>()("InvalidSecret", {
  problem: Schema.String
}) {
  override get message() {
    return this.problem
  }
}

/** The signing settings of an endpoint. */
export interface Signing {
  readonly scheme: Scheme
  /** Newest first. */
  readonly secrets: ReadonlyArray<Secret>
  /** Name of the signature header in Stripe style. (Default: petrel-signature) */
  readonly signatureHeader?: string | undefined
  /** Names of the headers that identify the request, if not the usual ones. */
  readonly headerNames?: HeaderNames | undefined
}

export interface Signer {
  /**
   * Returns the headers that identify and sign one attempt, as name, value, name, value… in a new
   * array.
   *
   * @param id the event's id: ASCII, the same at each attempt.
   * @param type the event's type: ASCII.
   * @param timestampSeconds time of the attempt, s since the epoch.
   * @param body the bytes that are sent.
   * @param nowMs ms since the epoch: secrets whose `until` is not after it do not sign.
   */
  readonly sign: (
    id: string,
    type: string,
    timestampSeconds: number,
    body: Uint8Array,
    nowMs: number
  ) => Array<string>
  /**
   * Returns the value of the signature header in what `sign` has made, whatever was appended to it;
   * undefined if the request is not signed.
   */
  readonly signatureIn: (headers: ReadonlyArray<string>) => string | undefined
}

interface Key {
  readonly sign: SignMessage
  readonly until: number
}

/** DER of a PKCS #8 Ed25519 private key up to its seed: node:crypto cannot import a bare seed. */
const ed25519Header = Buffer.from("302e020100300506032b657004220420", "hex")

const ed25519Key = (seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([ed25519Header, seed]), format: "der", type: "pkcs8" })

const publicBytes = (key: KeyObject): Buffer =>
  Buffer.from(createPublicKey(key).export({ format: "jwk" }).x ?? "", "base64url")

/**
 * Decodes base64 after a prefix. Buffer.from skips invalid characters, so only text that encodes
 * back to itself is accepted.
 */
const decodeAfter = (prefix: string, value: string): Buffer | undefined => {
  if (!value.startsWith(prefix)) return undefined
  const text = value.slice(prefix.length)
  const bytes = Buffer.from(text, "base64")
  return bytes.toString("base64") === text ? bytes : undefined
}

/** Returns a sentence that says why a secret is invalid for a scheme, or undefined. */
export const secretProblem = (scheme: Scheme, value: string): string | undefined => {
  switch (scheme) {
    case "standard": {
      const bytes = decodeAfter("whsec_", value)
      if (bytes === undefined)
        return "a secret for standard signatures must be whsec_ followed by base64"
      if (bytes.length < 24 || bytes.length > 64)
        return `a secret for standard signatures must hold 24 to 64 bytes, not ${bytes.length}`
      return undefined
    }
    case "standard-ed25519": {
      const bytes = decodeAfter("whsk_", value)
      if (bytes === undefined)
        return "a secret for standard-ed25519 signatures must be whsk_ followed by base64"
      if (bytes.length !== 32 && bytes.length !== 64)
        return `a secret for standard-ed25519 signatures must hold 32 bytes (the seed) or 64 (seed and public key), not ${bytes.length}`
      if (
        bytes.length === 64 &&
        !publicBytes(ed25519Key(bytes.subarray(0, 32))).equals(bytes.subarray(32))
      )
        return "the second half of the secret for standard-ed25519 signatures is not the public key of its first half"
      return undefined
    }
    case "stripe":
    case "github":
      return /^[\x21-\x7e]{8,256}$/.test(value)
        ? undefined
        : `a secret for ${scheme} signatures must be 8 to 256 ASCII characters without spaces`
    case "none":
      return "an endpoint whose requests are not signed takes no secret"
  }
}

/**
 * Generates a new secret for a scheme, from 32 random bytes.
 *
 * The bytes come from node:crypto: Effect's Random can be seeded and is not meant to be
 * unpredictable, as a secret must be.
 */
export const generateSecret = (scheme: Exclude<Scheme, "none">): Effect.Effect<string> =>
  Effect.sync(() => {
    const bytes = randomBytes(32)
    switch (scheme) {
      case "standard":
        return `whsec_${bytes.toString("base64")}`
      case "standard-ed25519":
        return `whsk_${bytes.toString("base64")}`
      case "stripe":
        return `whsec_${bytes.toString("base64url")}`
      case "github":
        return bytes.toString("hex")
    }
  })

/**
 * Returns the public key (`whpk_…`) with which receivers verify `v1a` signatures, or undefined for
 * any other secret.
 */
export const publicKeyOf = (secret: string): string | undefined => {
  const bytes = decodeAfter("whsk_", secret)
  if (bytes === undefined || secretProblem("standard-ed25519", secret) !== undefined)
    return undefined
  return `whpk_${publicBytes(ed25519Key(bytes.subarray(0, 32))).toString("base64")}`
}

/** Returns one signature of a message: a prefix (ASCII) and a body. */
type SignMessage = (prefix: string, body: Uint8Array) => string

/** Stripe's and GitHub's libraries use the whole text as the key, prefix included. */
const signingWith = (scheme: Exclude<Scheme, "none">, value: string): SignMessage => {
  switch (scheme) {
    case "standard": {
      const key = hmacKey(Buffer.from(value.slice("whsec_".length), "base64"))
      return (prefix, body) => `v1,${hmac(key, prefix, body, "base64")}`
    }
    case "standard-ed25519": {
      const key = ed25519Key(Buffer.from(value.slice("whsk_".length), "base64").subarray(0, 32))
      return (prefix, body) => {
        // Ed25519 reads its message twice, so it must be contiguous.
        const message = Buffer.concat([Buffer.from(prefix), body])
        return `v1a,${signWith(null, message, key).toString("base64")}`
      }
    }
    case "stripe": {
      const key = hmacKey(Buffer.from(value))
      return (prefix, body) => `v1=${hmac(key, prefix, body, "hex")}`
    }
    case "github": {
      const key = hmacKey(Buffer.from(value))
      return (prefix, body) => `sha256=${hmac(key, prefix, body, "hex")}`
    }
  }
}

const joined = (
  keys: ReadonlyArray<Key>,
  nowMs: number,
  separator: string,
  prefix: string,
  body: Uint8Array
): string => {
  let text = ""
  for (const { sign, until } of keys) {
    if (until > nowMs) text += text === "" ? sign(prefix, body) : separator + sign(prefix, body)
  }
  return text
}

/** Returns the name of the header that a request's signature is in; undefined without one. */
export const signatureHeaderOf = ({
  scheme,
  signatureHeader = usualStripeHeader
}: Pick<Signing, "scheme" | "signatureHeader">): string | undefined => {
  switch (scheme) {
    case "standard":
    case "standard-ed25519":
      return "webhook-signature"
    case "stripe":
      return signatureHeader
    case "github":
      return "x-hub-signature-256"
    case "none":
      return undefined
  }
}

/** Returns the value of the signature header; empty if no key is valid. */
type Sign = (id: string, seconds: number, body: Uint8Array, nowMs: number) => string

const signatureOf = (scheme: Exclude<Scheme, "none">, keys: ReadonlyArray<Key>): Sign => {
  switch (scheme) {
    case "standard":
    case "standard-ed25519":
      return (id, seconds, body, nowMs) => joined(keys, nowMs, " ", `${id}.${seconds}.`, body)
    case "stripe":
      return (_, seconds, body, nowMs) => {
        const signatures = joined(keys, nowMs, ",", `${seconds}.`, body)
        return signatures === "" ? "" : `t=${seconds},${signatures}`
      }
    case "github":
      return (_, __, body, nowMs) => keys.find(({ until }) => until > nowMs)?.sign("", body) ?? ""
  }
}

const signerFor = (signing: Signing, keys: ReadonlyArray<Key>): Signer => {
  const { headerNames, scheme } = signing
  const names = { ...usualHeaderNames, ...headerNames }
  const identity = (id: string, type: string, seconds: number) => [
    names.id,
    id,
    names.type,
    type,
    names.timestamp,
    String(seconds)
  ]
  const signatureName = signatureHeaderOf(signing)
  if (scheme === "none" || signatureName === undefined)
    return { sign: identity, signatureIn: () => undefined }
  const signature = signatureOf(scheme, keys)
  const { id: githubId, type: githubType } = githubHeaderNames
  return {
    sign: (id, type, seconds, body, nowMs) => {
      const headers = identity(id, type, seconds)
      const value = signature(id, seconds, body, nowMs)
      if (scheme === "github") headers.push(githubType, type, githubId, id)
      if (value !== "") headers.push(signatureName, value)
      return headers
    },
    // It stands behind three headers, or five in GitHub style, unless no key is valid.
    signatureIn: (headers) => {
      const at = scheme === "github" ? 10 : 6
      return headers[at] === signatureName ? headers[at + 1] : undefined
    }
  }
}

/**
 * Prepares the signing of an endpoint's requests, once per configuration. Keys are imported here,
 * so that an attempt costs only the signature.
 *
 * All valid secrets sign, newest first. GitHub's header holds a single signature, that of the
 * newest valid secret. If none is valid, there is no signature header, and the receiver rejects the
 * request.
 *
 * Fails with `InvalidSecret` if `secretProblem` returns a sentence.
 */
export const makeSigner = Effect.fnUntraced(function* (signing: Signing) {
  const { scheme, secrets } = signing
  const keys: Array<Key> = []
  if (scheme === "none") return signerFor(signing, keys)
  for (const { until = Number.POSITIVE_INFINITY, value } of secrets) {
    const problem = secretProblem(scheme, value)
    if (problem !== undefined) return yield* new InvalidSecret({ problem })
    keys.push({ sign: signingWith(scheme, value), until })
  }
  return signerFor(signing, keys)
})
