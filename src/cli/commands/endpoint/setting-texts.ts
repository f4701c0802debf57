import { Option, Result, Schema } from "effect"
import type { Endpoint, Secret } from "../../../domain/endpoint.ts"
import type { HeaderNames } from "../../../domain/header-names.ts"
import { identities } from "../../../domain/header-names.ts"
import { type InputName, RateLimit } from "../../../domain/settings/endpoint-table.ts"
import { signatureHeaderOf } from "../../../endpoints/signing.ts"
import type { EndpointDetail, EndpointView } from "../../../operations/endpoints/endpoint-view.ts"
import { defaultConnectTimeoutMs, defaultTimeoutMs } from "../../../policy/attempt-timeout.ts"
import { resolveRetry } from "../../../policy/presets.ts"
import { rateText } from "../../../policy/rate.ts"
import { durationText, localTime, spanText } from "../../../text/quantities.ts"

const decodeRate = Schema.decodeUnknownOption(RateLimit)

/** A line of what `petrel endpoint show` prints: what it says, and of what. */
export type Row = readonly [name: string, text: string]

/** How people see a setting. */
export interface SettingText {
  /** Its lines in what `petrel endpoint show` prints. None if it is shown with another setting. */
  readonly rows: (endpoint: EndpointDetail, now: number) => ReadonlyArray<Row>
  /** What a difference shows of one that is not set. (Default: default) */
  readonly unset?: string
  /** Returns what a difference shows of a value, which is JSON; undefined to show it as it is. */
  readonly value?: (value: unknown) => string | undefined
}

const shownElsewhere: SettingText = { rows: () => [] }

const ifSet = (name: string, text: string | undefined): ReadonlyArray<Row> =>
  text === undefined ? [] : [[name, text]]

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

/** The names of headers that the endpoint has otherwise. */
const headerNamesText = (headerNames: HeaderNames): string =>
  identities
    .flatMap((identity) => {
      const name = headerNames[identity]
      return name === undefined ? [] : [`the ${identity} in ${name}`]
    })
    .join(", ")

const alertsText = ({ alerts }: EndpointView): string => {
  if (alerts === undefined) return "as usual"
  return alerts === "off" ? "none" : `as usual but for ${Object.keys(alerts).join(", ")}`
}

const capText = ({ adapt, maxInFlight }: EndpointView): string =>
  `${maxInFlight} at the same time${adapt === true ? ", fewer while it answers 429 or slows down" : ""}`

const hostRow = (
  shared: EndpointDetail["sharedHost"],
  whose: string,
  which: "systemCap" | "tenantCap"
): ReadonlyArray<Row> =>
  shared?.[which] === undefined
    ? []
    : [
        [
          "host cap",
          `${shared[which]} at the same time to ${shared.host}, of all endpoints ${whose}`
        ]
      ]

const secretText = ({ createdAt, until, value }: Secret, now: number): string =>
  `${value}, made ${localTime(createdAt, now)}${until === undefined ? "" : validity(until, now)}`

const validity = (until: number, now: number): string =>
  until > now ? `, valid for another ${spanText(until - now)}` : ", no longer valid"

/** How people see each setting, in the order of `petrel endpoint show`. */
export const settingTexts: Readonly<Record<InputName, SettingText>> = {
  url: { rows: ({ url }) => [["url", url]] },
  types: {
    rows: (endpoint) => [["types", typesText(endpoint)]],
    value: (types) => (Array.isArray(types) && types.includes(">") ? "all events" : undefined)
  },
  sign: {
    rows: ({ sign, signatureHeader }) => {
      const header = signatureHeaderOf({ scheme: sign, signatureHeader })
      return [["sign", sign === "stripe" ? `stripe, in ${header}` : sign]]
    }
  },
  signatureHeader: shownElsewhere,
  format: { rows: ({ format }) => ifSet("format", format), unset: "the event's bytes" },
  secret: {
    rows: ({ publicKey, secrets }, now) => [
      ...secrets.map((secret): Row => ["secret", secretText(secret, now)]),
      ...ifSet("public key", publicKey)
    ]
  },
  headerNames: {
    rows: ({ headerNames }) =>
      headerNames === undefined ? [] : [["sent with", headerNamesText(headerNames)]]
  },
  retry: { rows: ({ retry }) => [["retry", retryText(retry)]] },
  retryFor: {
    rows: ({ retryFor = {} }) =>
      Object.entries(retryFor).map(([types, retry]) => [
        "retry for",
        `${types}: ${retryText(retry)}`
      ]),
    unset: "none"
  },
  maxInFlight: {
    rows: (endpoint) => [
      ["cap", capText(endpoint)],
      ...hostRow(endpoint.sharedHost, `of ${endpoint.tenant}`, "tenantCap"),
      ...hostRow(endpoint.sharedHost, "of all tenants", "systemCap")
    ]
  },
  adapt: { ...shownElsewhere, unset: "off" },
  rate: {
    rows: ({ rate }) => [["rate", rate === undefined ? "no limit" : `at most ${rateText(rate)}`]],
    unset: "no limit",
    value: (rate) => Option.match(decodeRate(rate), { onNone: String, onSome: rateText })
  },
  circuit: shownElsewhere,
  timeout: {
    rows: (endpoint) => [
      ["time-out", timeoutText("timeout", endpoint)],
      ...(endpoint.timeoutsCutTo === undefined
        ? []
        : [
            [
              "",
              `cut to ${durationText(endpoint.timeoutsCutTo)}: petrel tenant set ${endpoint.tenant} --max-timeout allows more`
            ] as const
          ])
    ],
    unset: "the policy's"
  },
  connectTimeout: {
    rows: (endpoint) => [["connect", `within ${timeoutText("connectTimeout", endpoint)}`]],
    unset: "the policy's"
  },
  redirects: {
    rows: ({ redirects }) => [
      ["redirects", redirects === 0 ? "none followed" : `up to ${redirects}`]
    ]
  },
  redirectsTo: {
    rows: ({ redirectsTo }) => ifSet("redirect to", redirectsTo?.join(", ")),
    unset: "its own origin"
  },
  contact: { rows: ({ contact }) => ifSet("contact", contact), unset: "nobody" },
  description: {
    rows: ({ description }) => ifSet("description", description),
    unset: "none"
  },
  metadata: {
    rows: ({ metadata = {} }) =>
      Object.entries(metadata).map(([key, value]) => ["metadata", `${key}=${value}`]),
    unset: "none"
  },
  alerts: { rows: (endpoint) => [["alerts", alertsText(endpoint)]] },
  operational: shownElsewhere,
  headers: {
    rows: ({ headers }) =>
      Object.entries(headers).map(([name, value]) => ["header", `${name}: ${value}`])
  },
  forwardHeaders: {
    rows: ({ forwards }) => (forwards.length === 0 ? [] : [["forwards", forwards.join(", ")]])
  }
}
