import { Result, Schema } from "effect"
import type { EndpointNow } from "../delivery/introspection/endpoint-activity.ts"
import type { Alert } from "../domain/alert.ts"
import { Endpoint } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import type { StoredEndpoint } from "../endpoints/endpoint-store.ts"
import { alertDetails, alertText } from "../history/alert-text.ts"
import { plainText } from "../history/line.ts"
import { spanText } from "../history/span.ts"
import { resolveRetry } from "../policy/presets.ts"
import { durationText, withWords } from "./duration.ts"
import { publicKey } from "./endpoint-change.ts"
import { circuitJson, healthJson, healthRows, moment } from "./endpoint-health.ts"
import { nowCells, nowHeadings, nowRows } from "./endpoint-now.ts"
import { rateText } from "./rate.ts"
import { labelled } from "./screen.ts"

const encode = Schema.encodeSync(Endpoint)

const mask = "********"

/**
 * Returns an endpoint's configuration as JSON, with its health if given. Secrets and the values of
 * headers are masked unless `reveal` is set.
 */
export const endpointJson = (
  { endpoint, revision }: StoredEndpoint,
  reveal: boolean,
  health?: Health
): object => {
  const { alerts, circuit: _, headers, retry, secrets, timeout, ...rest } = encode(endpoint)
  const { createdAt, updatedAt, disabled, paused, ...settings } = rest
  const key = publicKey(endpoint)
  return {
    ...settings,
    ...(timeout === undefined ? {} : { timeout: withWords(timeout) }),
    ...(alerts === undefined ? {} : { alerts: withWords(alerts) }),
    retry: withWords(retry),
    circuit: circuitJson(endpoint, health),
    headers: reveal
      ? headers
      : Object.fromEntries(Object.keys(headers).map((name) => [name, mask])),
    secrets: secrets.map((secret) => (reveal ? secret : { ...secret, value: mask })),
    ...(key === undefined ? {} : { publicKey: key }),
    ...(disabled === undefined ? {} : { disabled }),
    ...(paused === undefined ? {} : { paused }),
    ...(health === undefined ? {} : { health: healthJson(health) }),
    createdAt,
    updatedAt,
    revision
  }
}

/** Returns since when, by whom and why an endpoint is in a state. */
export const sinceText = (
  state: string,
  { at, by, reason }: { readonly at: number; readonly by: string; readonly reason?: string },
  now: number
): string => {
  const why = reason === undefined ? "" : `: ${plainText(reason)}`
  return `${state} since ${moment(at, now)} by ${plainText(by)}${why}`
}

/** Returns `enabled`, or since when and why the endpoint is disabled or paused. */
export const stateText = ({ disabled, paused }: Endpoint, now: number): string => {
  if (disabled !== undefined) return sinceText("disabled", disabled, now)
  return paused === undefined ? "enabled" : sinceText("paused", paused, now)
}

/** Returns the subscribed event types. */
export const typesText = ({ types }: Endpoint): string =>
  types.includes(">") ? "all events" : types.join(", ")

const retryText = (retry: Endpoint["retry"]): string => {
  const name = typeof retry === "string" ? retry : `${retry.backoff.kind} of its own`
  const policy = Result.getOrUndefined(resolveRetry(retry))
  return policy === undefined
    ? name
    : `${name} (at most ${policy.maxAttempts} attempts within ${durationText(policy.window)})`
}

const timeoutText = ({ retry, timeout }: Endpoint): string => {
  if (timeout !== undefined) return durationText(timeout)
  const policy = Result.getOrUndefined(resolveRetry(retry))
  return policy?.timeout === undefined
    ? "30 s (the default)"
    : `${durationText(policy.timeout)} (the retry policy's)`
}

const signText = (endpoint: Endpoint): string =>
  endpoint.sign === "stripe"
    ? `stripe, in ${endpoint.signatureHeader ?? "petrel-signature"}`
    : endpoint.sign

/** How an endpoint is displayed. */
export interface TextOptions {
  readonly reveal: boolean
  /** The current time, ms since the epoch. */
  readonly at: number
  /** Columns of the screen. (Default: no limit) */
  readonly width: number | undefined
  /** The raised alerts about the endpoint. */
  readonly raised: ReadonlyArray<Alert>
}

/** Returns an endpoint's configuration and health for people, one or more lines per property. */
export const endpointText = (
  { endpoint, revision }: StoredEndpoint,
  health: Health,
  activity: EndpointNow,
  { at: now, raised, reveal, width }: TextOptions
): string => {
  const key = publicKey(endpoint)
  const headers = Object.entries(endpoint.headers)
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["url", endpoint.url],
    ["types", typesText(endpoint)],
    ["state", stateText(endpoint, now)],
    ...nowRows(activity, now),
    ...healthRows(endpoint, health, now),
    ...raised.map((alert) => ["raised", raisedText(alert, now)] as const),
    ["sign", signText(endpoint)],
    ...endpoint.secrets.map(
      ({ createdAt, until, value }) =>
        [
          "secret",
          `${reveal ? value : mask}, made ${moment(createdAt, now)}${until === undefined ? "" : validity(until, now)}`
        ] as const
    ),
    ...(key === undefined ? [] : [["public key", key] as const]),
    ["retry", retryText(endpoint.retry)],
    ["cap", capText(endpoint)],
    ["rate", endpoint.rate === undefined ? "no limit" : `at most ${rateText(endpoint.rate)}`],
    ["time-out", timeoutText(endpoint)],
    ["redirects", endpoint.redirects === 0 ? "none followed" : `up to ${endpoint.redirects}`],
    ...(endpoint.contact === undefined ? [] : [["contact", endpoint.contact] as const]),
    ["alerts", alertsText(endpoint)],
    ...headers.map(([name, value]) => ["header", `${name}: ${reveal ? value : mask}`] as const),
    ["created", moment(endpoint.createdAt, now)],
    ["changed", `${moment(endpoint.updatedAt, now)} (revision ${revision})`]
  ]
  return [
    `${endpoint.tenant}/${endpoint.id}`,
    ...rows.flatMap(([name, value]) => labelled(`  ${name.padEnd(12)}`, plainText(value), width))
  ].join("\n")
}

const raisedText = (alert: Alert, now: number): string => {
  const { level, name, raisedAt } = alert
  const said = plainText([alertText(alert), ...alertDetails(alert)].join("; "))
  return `${name} (${level}) since ${moment(raisedAt, now)}: ${said}`
}

const alertsText = (endpoint: Endpoint): string => {
  const { alerts } = endpoint
  if (alerts === "off") return "none"
  if (alerts === undefined) return "as usual"
  return `as usual but for ${Object.keys(alerts).join(", ")}`
}

const capText = ({ adapt, maxInFlight }: Endpoint): string =>
  `${maxInFlight} at the same time${adapt === true ? ", fewer while it answers 429 or slows down" : ""}`

const validity = (until: number, now: number): string =>
  until > now ? `, valid for another ${spanText(until - now)}` : ", no longer valid"

/** Minimum width of a terminal for the column of URLs. */
const minWidthForUrls = 120

/** Returns the headings of a list of endpoints that fit the terminal's width. */
export const listHeadings = (width: number | undefined): ReadonlyArray<string> => [
  "endpoint",
  "state",
  ...nowHeadings,
  ...(width === undefined || width >= minWidthForUrls ? ["url"] : [])
]

const stateWord = ({ disabled, paused }: Endpoint, { circuit }: Health): string => {
  if (disabled !== undefined) return "disabled"
  if (paused !== undefined) return "paused"
  return circuit.state === "closed" ? "enabled" : circuit.state
}

/** Returns an endpoint as a row under `listHeadings`. */
export const listRow = (
  { endpoint }: StoredEndpoint,
  health: Health,
  activity: EndpointNow | undefined
): ReadonlyArray<string> => [
  `${endpoint.tenant}/${endpoint.id}`,
  stateWord(endpoint, health),
  ...nowCells(activity),
  endpoint.url
]
