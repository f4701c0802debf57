import { Result } from "effect"
import type { Alert } from "../../../domain/alert.ts"
import type { Endpoint } from "../../../domain/endpoint.ts"
import type { HeaderNames } from "../../../domain/header-names.ts"
import { identities } from "../../../domain/header-names.ts"
import { signatureHeaderOf } from "../../../endpoints/signing.ts"
import { alertDetails, alertText } from "../../../history/alert-text.ts"
import { plainText } from "../../../history/line.ts"
import { spanText } from "../../../history/span.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import type {
  EndpointDetail,
  EndpointView,
  ListedEndpoint
} from "../../../operations/endpoints/endpoint-view.ts"
import { durationText, moment } from "../../../operations/text/time.ts"
import { defaultConnectTimeoutMs, defaultTimeoutMs } from "../../../policy/attempt-timeout.ts"
import { resolveRetry } from "../../../policy/presets.ts"
import { rateText } from "../../format/rate.ts"
import { labelled } from "../../format/screen.ts"
import { healthRows } from "./health.ts"
import { nowCells, nowHeadings, nowRows } from "./now.ts"

/** Returns since when, by whom and why an endpoint is in a state. */
export const sinceText = (
  state: string,
  { at, by, reason }: { readonly at: number; readonly by: string; readonly reason?: string },
  now: number
): string => {
  const why = reason === undefined ? "" : `: ${plainText(reason)}`
  return `${state} since ${moment(at, now)} by ${plainText(by)}${why}`
}

/** Returns `enabled`, or since when and why the endpoint is disabled, suspended or paused. */
export const stateText = (
  { disabled, paused, suspended }: Pick<Endpoint, "disabled" | "paused" | "suspended">,
  now: number
): string => {
  if (disabled !== undefined) return sinceText("disabled", disabled, now)
  if (suspended !== undefined) return sinceText("suspended", suspended, now)
  return paused === undefined ? "enabled" : sinceText("paused", paused, now)
}

/** Returns the subscribed event types. */
export const typesText = ({ types }: EndpointView): string =>
  types.includes(">") ? "all events" : types.join(", ")

const retryText = (retry: Endpoint["retry"]): string => {
  const name = typeof retry === "string" ? retry : `${retry.backoff.kind} of its own`
  const policy = Result.getOrUndefined(resolveRetry(retry))
  return policy === undefined
    ? name
    : `${name} (at most ${policy.maxAttempts} attempts within ${durationText(policy.window)})`
}

const defaultTimeouts = { timeout: defaultTimeoutMs, connectTimeout: defaultConnectTimeoutMs }
type Timeout = keyof typeof defaultTimeouts

const policyTimeoutText = (field: Timeout, retry: Endpoint["retry"]): string => {
  const ofPolicy = Result.getOrUndefined(resolveRetry(retry))?.[field]
  return ofPolicy === undefined
    ? `${spanText(defaultTimeouts[field])} (the default)`
    : `${durationText(ofPolicy)} (the retry policy's)`
}

const timeoutText = (field: Timeout, endpoint: EndpointView): string => {
  const { [field]: own, retry, retryFor = {} } = endpoint
  if (own !== undefined) return durationText(own)
  const usual = policyTimeoutText(field, retry)
  const others = Object.entries(retryFor)
    .map(([types, retry]) => [types, policyTimeoutText(field, retry)] as const)
    .filter(([, text]) => text !== usual)
  return [usual, ...others.map(([types, text]) => `${text} for ${types}`)].join(", ")
}

const signText = ({ sign, signatureHeader }: EndpointView): string =>
  sign === "stripe" ? `stripe, in ${signatureHeaderOf({ scheme: sign, signatureHeader })}` : sign

/** The names of headers that the endpoint has otherwise. */
const headerNamesText = (headerNames: HeaderNames): string =>
  identities
    .flatMap((identity) => {
      const name = headerNames[identity]
      return name === undefined ? [] : [`the ${identity} in ${name}`]
    })
    .join(", ")

/** How an endpoint is displayed. */
export interface TextOptions {
  /** The current time, ms since the epoch. */
  readonly at: number
  /** Columns of the screen. (Default: no limit) */
  readonly width: number | undefined
}

/** Returns an endpoint's configuration and health for people, one or more lines per property. */
export const endpointText = (endpoint: EndpointDetail, { at: now, width }: TextOptions): string => {
  const { publicKey, raised, revision } = endpoint
  const headers = Object.entries(endpoint.headers)
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["url", endpoint.url],
    ["types", typesText(endpoint)],
    ["state", stateText(endpoint, now)],
    ...nowRows(endpoint, now),
    ...healthRows(endpoint, now),
    ...raised.map((alert) => ["raised", raisedText(alert, now)] as const),
    ["sign", signText(endpoint)],
    ...(endpoint.format === undefined ? [] : [["format", endpoint.format] as const]),
    ...endpoint.secrets.map(
      ({ createdAt, until, value }) =>
        [
          "secret",
          `${value}, made ${moment(createdAt, now)}${until === undefined ? "" : validity(until, now)}`
        ] as const
    ),
    ...(publicKey === undefined ? [] : [["public key", publicKey] as const]),
    ...(endpoint.headerNames === undefined
      ? []
      : [["sent with", headerNamesText(endpoint.headerNames)] as const]),
    ["retry", retryText(endpoint.retry)],
    ...Object.entries(endpoint.retryFor ?? {}).map(
      ([types, retry]) => ["retry for", `${types}: ${retryText(retry)}`] as const
    ),
    ["cap", capText(endpoint)],
    ...hostRows(endpoint),
    ["rate", endpoint.rate === undefined ? "no limit" : `at most ${rateText(endpoint.rate)}`],
    ["time-out", timeoutText("timeout", endpoint)],
    ["connect", `within ${timeoutText("connectTimeout", endpoint)}`],
    ["redirects", endpoint.redirects === 0 ? "none followed" : `up to ${endpoint.redirects}`],
    ...(endpoint.contact === undefined ? [] : [["contact", endpoint.contact] as const]),
    ["alerts", alertsText(endpoint)],
    ...headers.map(([name, value]) => ["header", `${name}: ${value}`] as const),
    ...(endpoint.forwards.length === 0
      ? []
      : [["forwards", endpoint.forwards.join(", ")] as const]),
    ["created", moment(endpoint.createdAt, now)],
    ["changed", `${moment(endpoint.updatedAt, now)} (revision ${revision})`]
  ]
  return [
    endpointLabel(endpoint),
    ...rows.flatMap(([name, value]) => labelled(`  ${name.padEnd(12)}`, plainText(value), width))
  ].join("\n")
}

const raisedText = (alert: Alert, now: number): string => {
  const { level, name, raisedAt } = alert
  const said = plainText([alertText(alert), ...alertDetails(alert)].join("; "))
  return `${name} (${level}) since ${moment(raisedAt, now)}: ${said}`
}

const alertsText = (endpoint: EndpointView): string => {
  const { alerts } = endpoint
  if (alerts === "off") return "none"
  if (alerts === undefined) return "as usual"
  return `as usual but for ${Object.keys(alerts).join(", ")}`
}

const capText = ({ adapt, maxInFlight }: EndpointView): string =>
  `${maxInFlight} at the same time${adapt === true ? ", fewer while it answers 429 or slows down" : ""}`

const hostRows = ({
  sharedHost,
  tenant
}: EndpointDetail): ReadonlyArray<readonly [string, string]> => {
  const row = (cap: number | undefined, whose: string) =>
    cap === undefined
      ? []
      : [
          [
            "host cap",
            `${cap} at the same time to ${sharedHost?.host}, of all endpoints ${whose}`
          ] as const
        ]
  return [
    ...row(sharedHost?.tenantCap, `of ${tenant}`),
    ...row(sharedHost?.systemCap, "of all tenants")
  ]
}

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

const stateWord = ({ circuit, disabled, paused, suspended }: ListedEndpoint): string => {
  if (disabled !== undefined) return "disabled"
  if (suspended !== undefined) return "suspended"
  if (paused !== undefined) return "paused"
  return circuit.state === undefined || circuit.state === "closed" ? "enabled" : circuit.state
}

/** Returns an endpoint as a row under `listHeadings`. */
export const listRow = (endpoint: ListedEndpoint): ReadonlyArray<string> => [
  endpointLabel(endpoint),
  stateWord(endpoint),
  ...nowCells(endpoint),
  endpoint.url
]

/** Returns the lines that show a new secret, and who gets which key. Empty without one. */
export const secretLines = ({
  secret,
  ...endpoint
}: EndpointView & { readonly secret?: string }): ReadonlyArray<string> => {
  if (secret === undefined) return []
  const { publicKey } = endpoint
  return publicKey === undefined
    ? [
        `  secret      ${secret}`,
        `  The receiver verifies with it. To see it again: \`petrel endpoint show ${endpointLabel(endpoint)} --reveal\`.`
      ]
    : [
        `  public key  ${publicKey}`,
        `  secret      ${secret}`,
        "  The receiver verifies with the public key; the secret is nobody else's."
      ]
}
