import { Result, Schema } from "effect"
import type { StoredEndpoint } from "../delivery/endpoint-store.ts"
import { Endpoint } from "../domain/endpoint.ts"
import { momentText, plainText } from "../history/line.ts"
import { spanText } from "../history/span.ts"
import { resolveRetry } from "../policy/presets.ts"
import { durationText, withWords } from "./duration.ts"
import { publicKey } from "./endpoint-change.ts"

const encode = Schema.encodeSync(Endpoint)

const mask = "********"

/** An endpoint's configuration as JSON. Secrets and the values of headers are masked unless revealed. */
export const endpointJson = ({ endpoint, revision }: StoredEndpoint, reveal: boolean): object => {
  const { headers, retry, secrets, timeout, ...rest } = encode(endpoint)
  const { createdAt, updatedAt, disabled, ...settings } = rest
  const key = publicKey(endpoint)
  return {
    ...settings,
    ...(timeout === undefined ? {} : { timeout: withWords(timeout) }),
    retry: withWords(retry),
    headers: reveal
      ? headers
      : Object.fromEntries(Object.keys(headers).map((name) => [name, mask])),
    secrets: secrets.map((secret) => (reveal ? secret : { ...secret, value: mask })),
    ...(key === undefined ? {} : { publicKey: key }),
    ...(disabled === undefined ? {} : { disabled }),
    createdAt,
    updatedAt,
    revision
  }
}

const moment = (at: number, now: number): string => momentText(at, now).replace(/\.\d+$/, "")

/** `enabled`, or since when and why not. */
export const stateText = ({ disabled }: Endpoint, now: number): string =>
  disabled === undefined
    ? "enabled"
    : `disabled since ${moment(disabled.at, now)} by ${plainText(disabled.by)}: ${plainText(disabled.reason)}`

/** The event types an endpoint wants. */
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

/** An endpoint's configuration for people: a line for each setting. */
export const endpointText = (
  { endpoint, revision }: StoredEndpoint,
  reveal: boolean,
  now: number
): string => {
  const key = publicKey(endpoint)
  const headers = Object.entries(endpoint.headers)
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["url", endpoint.url],
    ["types", typesText(endpoint)],
    ["state", stateText(endpoint, now)],
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
    ["in flight", `at most ${endpoint.maxInFlight}`],
    ["time-out", timeoutText(endpoint)],
    ["redirects", endpoint.redirects === 0 ? "none followed" : `up to ${endpoint.redirects}`],
    ...headers.map(([name, value]) => ["header", `${name}: ${reveal ? value : mask}`] as const),
    ["created", moment(endpoint.createdAt, now)],
    ["changed", `${moment(endpoint.updatedAt, now)} (revision ${revision})`]
  ]
  return [
    `${endpoint.tenant}/${endpoint.id}`,
    ...rows.map(([name, value]) => `  ${name.padEnd(12)}${value}`)
  ].join("\n")
}

const validity = (until: number, now: number): string =>
  until > now ? `, valid for another ${spanText(until - now)}` : ", no longer valid"

/** The columns of a list of endpoints. */
export const listHeadings = ["endpoint", "state", "types", "retry", "url"]

/** An endpoint as a row under `listHeadings`. */
export const listRow = ({ endpoint }: StoredEndpoint): ReadonlyArray<string> => [
  `${endpoint.tenant}/${endpoint.id}`,
  endpoint.disabled === undefined ? "enabled" : "disabled",
  endpoint.types.includes(">") ? "all" : endpoint.types.join(","),
  typeof endpoint.retry === "string" ? endpoint.retry : "(own policy)",
  endpoint.url
]
