import {
  createHmac,
  createPublicKey,
  type KeyObject,
  timingSafeEqual,
  verify as verifyWith
} from "node:crypto"
import { publicKeyOf } from "./signing.ts"

/** A request as its receiver sees it. Names of headers are in lower case. */
interface SignedRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** The keys that a receiver knows: secrets of any scheme, and public keys (`whpk_…`). */
export interface VerificationOptions {
  readonly secrets: ReadonlyArray<string>
  /** How far the signed time may be off, s. */
  readonly toleranceSeconds: number
}

/** What a receiver makes of a request's signature. */
export type Verification =
  | { readonly result: "unsigned" }
  | { readonly result: "unchecked"; readonly scheme: string }
  | { readonly result: "good"; readonly scheme: string }
  | { readonly result: "bad"; readonly scheme: string; readonly why: string }

/** DER of an Ed25519 public key up to its bytes. */
const ed25519PublicHeader = Buffer.from("302a300506032b6570032100", "hex")

const isSame = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}

const publicKey = (text: string): KeyObject | undefined => {
  const bytes = Buffer.from(text.slice("whpk_".length), "base64")
  if (!text.startsWith("whpk_") || bytes.length !== 32) return undefined
  const key = Buffer.concat([ed25519PublicHeader, bytes])
  return createPublicKey({ key, format: "der", type: "spki" })
}

const hmac = (key: Uint8Array | string, parts: ReadonlyArray<Uint8Array | string>) => {
  const made = createHmac("sha256", key)
  for (const part of parts) made.update(part)
  return made
}

const lateness = (seconds: number, tolerance: number, nowMs: number): string | undefined => {
  const off = Math.round(nowMs / 1000 - seconds)
  if (!Number.isFinite(off)) return "its time cannot be read"
  if (Math.abs(off) <= tolerance) return undefined
  return `it was signed ${Math.abs(off)} s ${off > 0 ? "ago" : "in the future"}`
}

/** A signature in a header, and how a key is tried with it. */
interface Claim {
  readonly scheme: string
  /** The signed time, s since the epoch; undefined where the scheme signs none. */
  readonly seconds: number | undefined
  readonly matches: (key: string) => boolean
}

const standardClaim = ({ body, headers }: SignedRequest): Claim | undefined => {
  const header = headers["webhook-signature"]
  if (header === undefined) return undefined
  const { "webhook-id": id = "", "webhook-timestamp": time = "" } = headers
  const signatures = header.split(" ").map((one) => one.split(","))
  const isPublic = signatures.some(([version]) => version === "v1a")
  const prefix = `${id}.${time}.`
  const matchesOne = (key: string): boolean => {
    const known = publicKey(publicKeyOf(key) ?? key)
    const message = Buffer.concat([Buffer.from(prefix), body])
    return signatures.some(([version, signature = ""]) => {
      if (version === "v1a" && known !== undefined)
        return verifyWith(null, message, known, Buffer.from(signature, "base64"))
      if (version !== "v1" || !key.startsWith("whsec_")) return false
      const bytes = Buffer.from(key.slice("whsec_".length), "base64")
      return isSame(hmac(bytes, [prefix, body]).digest("base64"), signature)
    })
  }
  return {
    scheme: isPublic ? "standard-ed25519" : "standard",
    seconds: /^\d+$/.test(time) ? Number(time) : Number.NaN,
    matches: matchesOne
  }
}

const githubClaim = ({ body, headers }: SignedRequest): Claim | undefined => {
  const header = headers["x-hub-signature-256"]
  return header === undefined
    ? undefined
    : {
        scheme: "github",
        seconds: undefined,
        matches: (key) => isSame(`sha256=${hmac(key, [body]).digest("hex")}`, header)
      }
}

const stripeForm = /^t=(\d+)((?:,v1=[0-9a-f]+)+)$/

/** The header has a name of the sender's choice. */
const stripeClaim = ({ body, headers }: SignedRequest): Claim | undefined => {
  for (const header of Object.values(headers)) {
    const [, time = "", rest = ""] = stripeForm.exec(header) ?? []
    if (time === "") continue
    const signatures = rest.split(",v1=").slice(1)
    return {
      scheme: "stripe",
      seconds: Number(time),
      matches: (key) => {
        const made = hmac(key, [`${time}.`, body]).digest("hex")
        return signatures.some((signature) => isSame(made, signature))
      }
    }
  }
  return undefined
}

/**
 * Checks a request's signature as its receiver should: the scheme is seen from the headers, any of
 * the keys may match, and the signed time must be near.
 *
 * @param nowMs ms since the epoch.
 */
export const verify = (
  request: SignedRequest,
  { secrets, toleranceSeconds }: VerificationOptions,
  nowMs: number
): Verification => {
  const claim = standardClaim(request) ?? githubClaim(request) ?? stripeClaim(request)
  if (claim === undefined) return { result: "unsigned" }
  const { matches, scheme, seconds } = claim
  if (secrets.length === 0) return { result: "unchecked", scheme }
  if (!secrets.some(matches))
    return { result: "bad", scheme, why: "no secret that was given matches" }
  const why = seconds === undefined ? undefined : lateness(seconds, toleranceSeconds, nowMs)
  return why === undefined ? { result: "good", scheme } : { result: "bad", scheme, why }
}
