import type {
  AddressCheck,
  ConnectionCheck,
  ShownCertificate
} from "../../../domain/connection-check.ts"
import type { ErrorClass } from "../../../domain/outcome.ts"
import { plainText } from "../../../text/plain-text.ts"
import { plural, spanText, zonedTime } from "../../../text/quantities.ts"
import { errorAdvice } from "./failure-checks.ts"
import type { Check, Findings } from "./findings.ts"

const dayMs = 24 * 60 * 60_000
/** A certificate is expected to be renewed this long before it ends, ms. */
const renewalMs = 14 * dayMs
/** A look-up that takes longer is worth a word, ms. */
const slowLookupMs = 1_000

/** The codes do not tell an authority of one's own from an intermediate certificate that is not sent. */
const unknownIssuer = [
  "its issuer is not known here",
  "If the issuer is an authority of your own, give its certificate to the workers (`petrel worker --receiver-ca`). If it is a public one, configure the receiver to send its whole chain, not only its own certificate."
] as const

/** What Node's and OpenSSL's codes mean for the one who runs the receiver. */
const distrusts: Readonly<Record<string, readonly [says: string, advice: string]>> = {
  CERT_HAS_EXPIRED: ["it has expired", "Renew it at the receiver."],
  CERT_NOT_YET_VALID: [
    "it is not valid yet",
    "Check the receiver's certificate, and this machine's clock."
  ],
  DEPTH_ZERO_SELF_SIGNED_CERT: [
    "it is self-signed",
    "Give the receiver a certificate of a public authority, or give the certificate of its authority to the workers (`petrel worker --receiver-ca`)."
  ],
  SELF_SIGNED_CERT_IN_CHAIN: [
    "its authority is not a public one",
    "Give the receiver a certificate of a public authority, or give the certificate of its authority to the workers (`petrel worker --receiver-ca`)."
  ],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownIssuer,
  ERR_TLS_CERT_ALTNAME_INVALID: [
    "it is for another host",
    "Use a name that the certificate covers in the endpoint's URL, or get a certificate for this one."
  ]
}

const nameCheck = (
  { addresses, error, host, lookupMs = 0, refused }: ConnectionCheck,
  { id, tenant }: Findings["endpoint"]
): Check => {
  if (error !== undefined)
    return {
      name: "name",
      result: "problem",
      says: plainText(error.message),
      advice: errorAdvice(error.class, `${tenant}/${id}`)
    }
  const found = addresses.map(({ address }) => address).join(", ")
  const left =
    refused === 0
      ? ""
      : `; ${plural(refused, "other address is", "other addresses are")} not allowed`
  return {
    name: "name",
    result: lookupMs > slowLookupMs ? "warning" : "ok",
    says: `${plainText(host)} is ${found}${left} (looked up in ${spanText(lookupMs)})`,
    ...(lookupMs > slowLookupMs
      ? { advice: "Name look-ups are slow: check the name servers of the workers' machines." }
      : {})
  }
}

const failedText = ({ address, error }: AddressCheck): string =>
  `${address}: ${plainText(error?.message ?? "")}`

const connectCheck = (
  { addresses, port }: ConnectionCheck,
  { id, tenant }: Findings["endpoint"]
): Check => {
  const failed = addresses.filter(({ error }) => error !== undefined)
  const [worst] = failed
  const made = addresses
    .filter(({ error }) => error === undefined)
    .map(({ address, durationMs }) => `${address} in ${spanText(durationMs)}`)
  if (worst?.error === undefined)
    return {
      name: "connection",
      result: "ok",
      says: `connected to port ${port} of ${made.join(", ")}`
    }
  const kind: ErrorClass = worst.error.class
  const isWhole = made.length === 0
  return {
    name: "connection",
    result: isWhole ? "problem" : "warning",
    says: `port ${port} of ${failed.map(failedText).join("; ")}${isWhole ? "" : `; connected to ${made.join(", ")}`}`,
    advice: isWhole
      ? errorAdvice(kind, `${tenant}/${id}`)
      : "Requests use the other address; have this one repaired, or removed from DNS."
  }
}

const daysText = ({ validUntil }: ShownCertificate, now: number): string => {
  const days = Math.floor(Math.abs(validUntil - now) / dayMs)
  return validUntil < now
    ? `expired ${plural(days, "day")} ago`
    : `valid for ${plural(days, "more day")}, until ${zonedTime(validUntil, now)}`
}

const chainText = (chain: ReadonlyArray<ShownCertificate>): string =>
  chain.map(({ subject }) => plainText(subject)).join(" ← ")

/** Returns who issued the last certificate of a chain that ends too early. */
const missingText = (chain: ReadonlyArray<ShownCertificate>): string => {
  const last = chain.at(-1)
  return last === undefined ? "" : ` ← ${plainText(last.issuer)} (not sent)`
}

const certificateCheck = ({ addresses }: ConnectionCheck, now: number): Check | undefined => {
  const shaken = addresses.flatMap(({ tls }) => (tls === undefined ? [] : [tls]))
  const bad = shaken.find(({ distrust }) => distrust !== undefined)
  const tls = bad ?? shaken[0]
  const [own] = tls?.chain ?? []
  if (tls === undefined || own === undefined) return undefined
  const isKnown = distrusts[tls.distrust ?? ""] !== unknownIssuer
  const chain = `${chainText(tls.chain)}${isKnown ? "" : missingText(tls.chain)}`
  const says = `${chain}; ${daysText(own, now)}; ${tls.protocol}`
  if (tls.distrust !== undefined) {
    const [why, advice] = distrusts[tls.distrust] ?? [
      `it is not trusted (${tls.distrust})`,
      "Check the receiver's certificate."
    ]
    return { name: "certificate", result: "problem", says: `${why}: ${says}`, advice }
  }
  const first = tls.chain.reduce((one, other) => (other.validUntil < one.validUntil ? other : one))
  if (first.validUntil - now > renewalMs) return { name: "certificate", result: "ok", says }
  return {
    name: "certificate",
    result: "warning",
    says: `${first === own ? "it" : plainText(first.subject)} expires soon: ${says}`,
    advice: "Have it renewed before that: once it has expired, every request fails."
  }
}

/** Checks the way to the receiver: name, connection, certificate. */
export const connectionChecks = (
  { connection, endpoint }: Findings,
  now: number
): ReadonlyArray<Check> => {
  if (connection === undefined)
    return [
      {
        name: "connection",
        result: "unknown",
        says: "not tried: only the worker that owns the endpoint can try it"
      }
    ]
  const { addresses, error, lookupMs } = connection
  const names =
    lookupMs === undefined && error === undefined ? [] : [nameCheck(connection, endpoint)]
  if (addresses.length === 0) return names
  const certificate = certificateCheck(connection, now)
  return [
    ...names,
    connectCheck(connection, endpoint),
    ...(certificate === undefined ? [] : [certificate])
  ]
}
