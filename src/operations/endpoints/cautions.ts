import { Duration, Result } from "effect"
import type { Endpoint } from "../../domain/endpoint.ts"
import { usualHeaderNames } from "../../domain/header-names.ts"
import type { RetryPolicy } from "../../domain/retry-policy.ts"
import { commonType } from "../../domain/type-filter.ts"
import { refusalOf, usualPorts } from "../../policy/address.ts"
import { attemptTimeoutMs, connectTimeoutMs } from "../../policy/attempt-timeout.ts"
import { policiesOf } from "../../policy/endpoint-policies.ts"
import { ladder, totalTime } from "../../policy/retry-outline.ts"
import { durationText, spanText } from "../../text/quantities.ts"

/** What ends sooner is over before somebody who sleeps or travels can repair it, ms. */
const fewHoursMs = 4 * 60 * 60_000

/**
 * Returns a warning about a policy that gives up within a few hours, as the rest of a sentence about
 * it; undefined for all others. The window ends every delivery. The attempts alone do not: probes
 * of an open circuit use up none.
 */
export const shortPolicy = (policy: RetryPolicy): string | undefined => {
  const { maxAttempts, window } = policy
  const windowMs = Duration.toMillis(window)
  if (windowMs < fewHoursMs)
    return `gives up after ${spanText(windowMs)}: if the receiver is down for longer, its events become dead letters`
  const takesMs = totalTime(policy)
  // Fewer delays: the window ends the round.
  if (takesMs >= fewHoursMs || ladder(policy).length < maxAttempts - 1) return undefined
  const attempts =
    maxAttempts === 1 ? "a single attempt" : `${maxAttempts} attempts within ${spanText(takesMs)}`
  return `makes ${attempts}: deliveries that fail for longer are dead-lettered, unless the circuit opens first`
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
    : `the URL is http: anyone on the network path can read ${exposed.join(" and ")}; use https if that is a credential`
}

const shortTimeoutCaution = (timeout: Duration.Duration | undefined, whose: string) =>
  timeout !== undefined && Duration.toMillis(timeout) < shortTimeout
    ? [
        `${whose} of ${durationText(timeout)} is short: a slow answer counts as a failure, and the receiver sees the event again; 10 s or more is usual`
      ]
    : []

/** Policies that give up within a few hours. */
const shortPolicyCautions = (endpoint: Endpoint): ReadonlyArray<string> =>
  Result.getOrElse(policiesOf(endpoint), () => []).flatMap(({ policy, types }) => {
    const said = shortPolicy(policy)
    return said === undefined
      ? []
      : [`the retry policy${types === undefined ? "" : ` for ${types}`} ${said}`]
  })

/** A connect time-out that the time-out of the whole attempt never lets come. */
const connectTimeoutCautions = (endpoint: Endpoint): ReadonlyArray<string> => {
  const policies = Result.getOrElse(policiesOf(endpoint), () => [])
  const said = policies.flatMap(({ policy }) => {
    if ((endpoint.connectTimeout ?? policy.connectTimeout) === undefined) return []
    const [connect, whole] = [
      connectTimeoutMs(endpoint, policy),
      attemptTimeoutMs(endpoint, policy)
    ]
    return connect < whole
      ? []
      : [
          `the connect time-out of ${durationText(Duration.millis(connect))} never comes, since a whole attempt has ${durationText(Duration.millis(whole))}`
        ]
  })
  return [...new Set(said)]
}

/** The endpoint's own time-out counts in place of those of its policies. */
const timeoutCautions = (endpoint: Endpoint): ReadonlyArray<string> => {
  if (endpoint.timeout !== undefined) return shortTimeoutCaution(endpoint.timeout, "the time-out")
  return Result.getOrElse(policiesOf(endpoint), () => []).flatMap(({ policy, types }) =>
    shortTimeoutCaution(
      policy.timeout,
      `the retry policy's time-out${types === undefined ? "" : ` for ${types}`}`
    )
  )
}

/** Policies for event types that the endpoint never gets. */
const unusedCautions = ({ retryFor = {}, types }: Endpoint): ReadonlyArray<string> =>
  Object.keys(retryFor)
    .filter((filter) => !types.some((wanted) => commonType(wanted, filter) !== undefined))
    .map(
      (filter) =>
        `the retry policy for ${filter} is for none of the endpoint's event types, ${types.join(", ")}`
    )

/** Where receivers' libraries for Standard Webhooks read what is signed. */
const libraryHeaders = ["id", "timestamp"] as const

const headerNameCautions = ({ headerNames = {}, sign }: Endpoint): ReadonlyArray<string> => {
  if (sign !== "standard" && sign !== "standard-ed25519") return []
  const moved = libraryHeaders.filter((name) => headerNames[name] !== undefined)
  const [sent, read] = [headerNames, usualHeaderNames].map((names) =>
    moved.map((name) => names[name]).join(" and ")
  )
  return moved.length === 0
    ? []
    : [
        `receivers' libraries for Standard Webhooks refuse requests without ${read}: a receiver with such a library has to rename ${sent} first`
      ]
}

/** Returns warnings about settings that are valid but seldom intended. */
export const cautions = (endpoint: Endpoint): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const caution of [addressCaution(new URL(endpoint.url)), plainTextCaution(endpoint)])
    if (caution !== undefined) found.push(caution)
  return [
    ...found,
    ...timeoutCautions(endpoint),
    ...connectTimeoutCautions(endpoint),
    ...shortPolicyCautions(endpoint),
    ...unusedCautions(endpoint),
    ...headerNameCautions(endpoint)
  ]
}
