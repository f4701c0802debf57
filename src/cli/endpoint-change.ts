import { Duration, Effect, Result } from "effect"
import type { Endpoint, Secret } from "../domain/endpoint.ts"
import { maxTypes } from "../domain/endpoint.ts"
import { alertType } from "../domain/type-filter.ts"
import { generateSecret, publicKeyOf, secretProblem } from "../endpoints/signing.ts"
import { refusalOf, usualPorts } from "../policy/address.ts"
import { resolveRetry } from "../policy/presets.ts"
import { durationText } from "./duration.ts"
import type { EndpointFields } from "./endpoint-fields.ts"
import { refusal } from "./refused.ts"

/** The problem of an endpoint without a URL. */
export const urlMissing = "--url is missing"

/** Settings that `endpoint set` resets. */
export interface Removals {
  /** Names of headers to remove, in any case. */
  readonly headers: ReadonlyArray<string>
  /** Resets the time-out to the policy's. */
  readonly timeout: boolean
  /** Removes the rate limit. */
  readonly rate: boolean
  /** Removes the contact from its alerts. */
  readonly contact?: boolean
}

export const nothingRemoved: Removals = { headers: [], timeout: false, rate: false }

/** An endpoint after a change, and the secret generated for it, if any. */
export interface ChangedEndpoint {
  readonly endpoint: Endpoint
  readonly made: string | undefined
}

/** Returns an endpoint with its name and all settings at their defaults. */
export const blankEndpoint = (
  name: Pick<Endpoint, "tenant" | "id">,
  generation: string,
  now: number
): Endpoint => ({
  v: 1,
  tenant: name.tenant,
  id: name.id,
  generation,
  url: "",
  types: [">"],
  sign: "standard",
  secrets: [],
  retry: "default",
  maxInFlight: 10,
  redirects: 3,
  headers: {},
  createdAt: now,
  updatedAt: now
})

/**
 * Applies the given settings and keeps all others. Drops secrets that the scheme cannot use.
 * Generates a secret if none is left.
 *
 * @param now ms since the epoch.
 */
export const changedEndpoint = Effect.fnUntraced(function* (
  before: Endpoint,
  fields: EndpointFields,
  removals: Removals,
  now: number
) {
  const problems = conflicts(before, fields, removals)
  if (problems.length > 0) return yield* refusal(problems)
  const sign = fields.sign ?? before.sign
  const { made, secrets } = yield* secretsFor(sign, before.secrets, fields.secret, now)
  const {
    adapt: _,
    alerts: oldAlerts,
    circuit: __,
    contact: oldContact,
    rate: ___,
    signatureHeader: oldHeader,
    timeout: ____,
    ...rest
  } = before
  const signatureHeader = sign === "stripe" ? (fields.signatureHeader ?? oldHeader) : undefined
  const timeout = fields.timeout ?? (removals.timeout ? undefined : before.timeout)
  const rate = fields.rate ?? (removals.rate ? undefined : before.rate)
  const contact = fields.contact ?? (removals.contact === true ? undefined : oldContact)
  const alerts = fields.alerts ?? oldAlerts ?? {}
  const circuit = fields.circuit ?? before.circuit ?? {}
  const endpoint: Endpoint = {
    ...rest,
    url: fields.url ?? before.url,
    types: typesAfter(before, fields),
    sign,
    secrets,
    retry: fields.retry ?? before.retry,
    maxInFlight: fields.maxInFlight ?? before.maxInFlight,
    redirects: fields.redirects ?? before.redirects,
    headers: mergedHeaders(before.headers, fields.headers, removals.headers),
    updatedAt: now,
    ...(signatureHeader === undefined ? {} : { signatureHeader }),
    ...(timeout === undefined ? {} : { timeout }),
    ...((fields.adapt ?? before.adapt) ? { adapt: true } : {}),
    ...(rate === undefined ? {} : { rate }),
    ...(Object.keys(circuit).length === 0 ? {} : { circuit }),
    ...(contact === undefined ? {} : { contact }),
    ...(Object.keys(alerts).length === 0 ? {} : { alerts })
  }
  return { endpoint, made } satisfies ChangedEndpoint
})

/** A new operational endpoint without types gets only its tenant's alerts. */
const typesAfter = (
  before: Endpoint,
  { operational, types }: EndpointFields
): Endpoint["types"] => {
  const asked = types ?? (operational === true && before.url === "" ? undefined : before.types)
  if (operational !== true) return asked ?? before.types
  const alerts = alertType(">")
  if (asked === undefined) return [alerts]
  return asked.includes(alerts) ? asked : [...asked, alerts]
}

/** Returns the conflicts of the given settings with the endpoint. */
const conflicts = (
  before: Endpoint,
  fields: EndpointFields,
  removals: Removals
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const sign = fields.sign ?? before.sign
  if (before.url === "" && fields.url === undefined) problems.push(urlMissing)
  const problem = fields.secret === undefined ? undefined : secretProblem(sign, fields.secret)
  if (problem !== undefined) problems.push(`the secret does not fit: ${problem}`)
  if (fields.signatureHeader !== undefined && sign !== "stripe")
    problems.push(`--signature-header goes with --sign stripe only, and this is ${sign}`)
  if (removals.timeout && fields.timeout !== undefined)
    problems.push("--timeout and --no-timeout exclude each other")
  if (removals.contact === true && fields.contact !== undefined)
    problems.push("--contact and --no-contact exclude each other")
  if (removals.rate && fields.rate !== undefined)
    problems.push("--rate and --no-rate exclude each other")
  const { length } = typesAfter(before, fields)
  if (length > maxTypes)
    problems.push(
      `an endpoint takes at most ${maxTypes} event types, and these would be ${length}: use wildcards such as invoice.>, or a second endpoint`
    )
  const current = Object.keys(before.headers).map((name) => name.toLowerCase())
  for (const name of removals.headers)
    if (!current.includes(name.toLowerCase()))
      problems.push(`--no-header ${JSON.stringify(name)} names a header that is not set`)
  return problems
}

const secretsFor = Effect.fnUntraced(function* (
  sign: Endpoint["sign"],
  before: ReadonlyArray<Secret>,
  given: string | undefined,
  now: number
) {
  if (sign === "none") return { secrets: [], made: undefined }
  if (given !== undefined) return { secrets: [{ value: given, createdAt: now }], made: undefined }
  const fits = ({ value }: Secret) => secretProblem(sign, value) === undefined
  const [newest] = before
  if (newest !== undefined && fits(newest)) return { secrets: before.filter(fits), made: undefined }
  const made = yield* generateSecret(sign)
  return { secrets: [{ value: made, createdAt: now }], made }
})

/** Header names are case-insensitive: a given header replaces the existing one. */
const mergedHeaders = (
  before: Readonly<Record<string, string>>,
  given: Readonly<Record<string, string>>,
  dropped: ReadonlyArray<string>
): Record<string, string> => {
  const gone = new Set([...Object.keys(given), ...dropped].map((name) => name.toLowerCase()))
  const kept = Object.entries(before).filter(([name]) => !gone.has(name.toLowerCase()))
  return { ...Object.fromEntries(kept), ...given }
}

/**
 * Prepends a new secret. The existing secrets remain valid for a while.
 *
 * @param keepOld ms; 0 removes the old secrets at once.
 * @param now ms since the epoch.
 */
export const rotatedSecrets = (
  secrets: ReadonlyArray<Secret>,
  value: string,
  keepOld: number,
  now: number
): ReadonlyArray<Secret> => {
  const old = secrets
    .map((secret) => ({
      ...secret,
      until: Math.min(secret.until ?? Number.POSITIVE_INFINITY, now + keepOld)
    }))
    .filter(({ until }) => until > now)
  return [{ value, createdAt: now }, ...old]
}

const shortTimeout = 10_000

/** Loopback addresses: `petrel dev` allows them. */
const loopback = /^(localhost$|127\.|::1$)/
/**
 * Link-local addresses and the metadata services of clouds, which return credentials to any client.
 */
const neverMeant = /^(169\.254\.|fe[89ab][0-9a-f]:|fd00:ec2::254$)/

const unbracketed = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1")

const isPublic = (address: string): boolean =>
  refusalOf(address, 443, { networks: [], ports: [] }, new Set()) === undefined

const addressCaution = ({ hostname, port }: URL): string | undefined => {
  const address = unbracketed(hostname)
  const isLiteral = /^[\d.]+$/.test(address) || address.includes(":")
  if (address !== "localhost" && (!isLiteral || isPublic(address)))
    return port === "" || usualPorts.includes(Number(port))
      ? undefined
      : `port ${port} is neither 443 nor 80: \`petrel worker\` sends there only with --allow-port ${port}, or to an address that --allow-network opens`
  const problem = `${hostname} is not a public address`
  if (neverMeant.test(address)) return `${problem}: requests to it are refused`
  if (!loopback.test(address))
    return `${problem}: \`petrel worker\` sends there only with --allow-network ${address}`
  const network = address === "localhost" ? "127.0.0.1" : address
  return `${problem}: \`petrel dev\` sends there; \`petrel worker\` only with --allow-network ${network}`
}

const plainTextCaution = ({ headers, url }: Endpoint): string | undefined => {
  const { hostname, protocol, search } = new URL(url)
  if (protocol === "https:" || loopback.test(unbracketed(hostname))) return undefined
  const exposed = [
    ...(search === "" ? [] : ["the URL's query"]),
    ...Object.keys(headers).map((name) => `the header ${name}`)
  ]
  return exposed.length === 0
    ? undefined
    : `the URL is http: whoever is on the way can read ${exposed.join(" and ")}; use https where that is a credential`
}

/** Returns warnings about settings that are valid but seldom intended. */
export const cautions = (endpoint: Endpoint): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const caution of [addressCaution(new URL(endpoint.url)), plainTextCaution(endpoint)])
    if (caution !== undefined) found.push(caution)
  const policy = Result.getOrUndefined(resolveRetry(endpoint.retry))
  const timeout = endpoint.timeout ?? policy?.timeout
  if (timeout !== undefined && Duration.toMillis(timeout) < shortTimeout) {
    const whose = endpoint.timeout === undefined ? "the retry policy's time-out" : "the time-out"
    found.push(
      `${whose} of ${durationText(timeout)} is short: a slow answer counts as a failure, and the receiver sees the event again; 10 s or more is usual`
    )
  }
  return found
}

/** Returns the public key for verification, if the scheme has one. */
export const publicKey = ({ secrets, sign }: Endpoint): string | undefined => {
  const [newest] = secrets
  return sign === "standard-ed25519" && newest !== undefined ? publicKeyOf(newest.value) : undefined
}

/** Returns the lines that show a new secret, and who gets which key. */
export const secretText = (endpoint: Endpoint, made: string): string => {
  const key = publicKey(endpoint)
  return key === undefined
    ? `  secret      ${made}\n  The receiver verifies with it. To see it again: \`petrel endpoint show ${endpoint.tenant}/${endpoint.id} --reveal\`.`
    : `  public key  ${key}\n  secret      ${made}\n  The receiver verifies with the public key; the secret is nobody else's.`
}
