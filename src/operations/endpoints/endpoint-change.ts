import { Duration, Effect } from "effect"
import {
  type Endpoint,
  type EndpointName,
  endpointLabel,
  getsOnlyAlerts
} from "../../domain/endpoint.ts"
import { githubHeaderNames, identities, usualHeaderNames } from "../../domain/header-names.ts"
import { Invalid, type Problem } from "../../domain/problem.ts"
import {
  type EndpointSettings,
  endpointSettings,
  maxTypes
} from "../../domain/settings/endpoint-table.ts"
import {
  changeProblems,
  initialOf,
  type Stored,
  settingsAfter,
  withoutCredentials,
  withoutSettings
} from "../../domain/settings/setting.ts"
import { alertType } from "../../domain/type-filter.ts"
import { maxTimeoutMsOf } from "../../endpoints/inherited-settings.ts"
import { readSettingsInForce } from "../../endpoints/settings-store.ts"
import { secretProblem, signatureHeaderOf } from "../../endpoints/signing.ts"
import { equalFilters } from "../../policy/endpoint-policies.ts"
import { durationText } from "../../text/quantities.ts"
import type { Asker } from "../caller.ts"
import { secretsFor } from "./endpoint-secrets.ts"
import type { EndpointPatch } from "./endpoint-settings.ts"

/** True where requests go to another origin after a change than before. */
const movesFrom = (before: Endpoint, url: string): boolean =>
  before.url !== "" && url !== "" && new URL(before.url).origin !== new URL(url).origin

/**
 * Returns an endpoint as a change of it by somebody begins. Who may not see credentials may not
 * send them to another address either, where their values could be read: with another origin, only those
 * that the change itself gives remain.
 *
 * @param url of the endpoint after the change.
 */
const mayKeepCredentials = (
  before: Endpoint,
  url: string,
  { scopes }: Pick<Asker, "scopes">
): Endpoint =>
  movesFrom(before, url) && !scopes.includes("secrets:read")
    ? withoutCredentials(endpointSettings, before)
    : before

const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

/** Returns what to know where a change leads to another origin. */
export const originCautions = (before: Endpoint, after: Endpoint): ReadonlyArray<string> => {
  if (!movesFrom(before, after.url)) return []
  const { origin } = new URL(after.url)
  const left = new Set(Object.keys(after.headers).map((name) => name.toLowerCase()))
  const dropped = Object.keys(before.headers).filter((name) => !left.has(name.toLowerCase()))
  const kept = Object.keys(before.headers).filter(
    (name) => before.headers[name] === after.headers[name]
  )
  const isShared =
    after.sign !== "standard-ed25519" &&
    before.secrets.some(({ value }) => after.secrets.some((secret) => secret.value === value))
  return [
    ...(dropped.length === 0
      ? []
      : [
          `requests go to another origin, so the headers ${listed(dropped)} are dropped: give them again if ${origin} is to get them`
        ]),
    ...(kept.length === 0
      ? []
      : [
          `${origin} also gets ${kept.length === 1 ? "the header" : "the headers"} ${listed(kept)}: remove what it must not know`
        ]),
    ...(isShared
      ? [
          `the signing secret is the one that ${new URL(before.url).origin} knows: rotate it if the new receiver belongs to someone else (\`petrel endpoint rotate ${endpointLabel(after)}\`)`
        ]
      : [])
  ]
}

/** The settings that name headers of an endpoint's requests. */
type HeaderSettings = Pick<
  Stored<EndpointSettings>,
  "forwardHeaders" | "headerNames" | "headers" | "sign" | "signatureHeader"
>

interface SentHeader {
  readonly name: string
  /** What it is, for people. */
  readonly what: string
  /** The setting that chose its name, if one did. */
  readonly field?: string
}

const sentHeaders = (settings: HeaderSettings): ReadonlyArray<SentHeader> => {
  const { forwardHeaders = [], headerNames = {}, headers, sign, signatureHeader } = settings
  const signature = signatureHeaderOf({ scheme: sign, signatureHeader })
  const github = sign === "github" ? Object.values(githubHeaderNames) : []
  return [
    ...identities.map((identity): SentHeader => {
      const name = headerNames[identity]
      const what = `the header of the ${identity}`
      return name === undefined
        ? { name: usualHeaderNames[identity], what }
        : { name, what, field: `headerNames.${identity}` }
    }),
    ...(sign === "stripe" && signatureHeader !== undefined
      ? [{ name: signatureHeader, what: "the signature header", field: "signatureHeader" }]
      : signature === undefined
        ? []
        : [{ name: signature, what: "the signature header" }]),
    ...github.map((name) => ({ name, what: "a header of GitHub style" })),
    ...Object.keys(headers).map((name) => ({ name, what: "one of its own headers" })),
    ...forwardHeaders.map((name) => ({
      ...{ name, what: "a header that is forwarded", field: "forwardHeaders" }
    }))
  ]
}

/** Returns a problem for each two headers of an endpoint's requests that have the same name. */
const headerCollisions = (settings: HeaderSettings): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const seen = new Map<string, SentHeader>()
  for (const header of sentHeaders(settings)) {
    const name = header.name.toLowerCase()
    const other = seen.get(name)
    seen.set(name, header)
    if (other === undefined) continue
    const [chosen, beside] = header.field === undefined ? [other, header] : [header, other]
    problems.push({
      field: chosen.field ?? "headers",
      message: `${JSON.stringify(chosen.name)} is also the name of ${beside.what}: choose another one`
    })
  }
  return problems
}

/** The time-outs that a change gives, by their fields. */
const given = (patch: EndpointPatch): ReadonlyArray<readonly [string, Duration.Duration]> => {
  const choices = [
    ["", patch],
    ["retry.", patch.retry],
    ...Object.entries(patch.retryFor ?? {}).map(
      ([types, choice]) => [`retryFor.${types}.`, choice] as const
    )
  ] as const
  return choices.flatMap(([prefix, of]) => {
    if (of === undefined || of === null || typeof of === "string") return []
    return (["timeout", "connectTimeout"] as const).flatMap((name) => {
      const value = of[name]
      return value === undefined || value === null ? [] : [[`${prefix}${name}`, value] as const]
    })
  })
}

/**
 * Reads the longest time-out that a tenant's endpoints may have, ms; no bound where the change gives
 * no time-out, so that nothing is read for it.
 */
export const maxTimeoutFor = (tenant: string, patch: EndpointPatch) =>
  given(patch).length === 0
    ? Effect.succeed(Number.POSITIVE_INFINITY)
    : Effect.map(readSettingsInForce(tenant), maxTimeoutMsOf)

/**
 * Returns what is wrong with the time-outs that a change gives.
 *
 * @param mostMs the longest that they may be.
 */
const timeoutProblems = (patch: EndpointPatch, mostMs: number): ReadonlyArray<Problem> =>
  given(patch)
    .filter(([, timeout]) => Duration.toMillis(timeout) > mostMs)
    .map(([field]) => ({
      field,
      message: `must be at most ${durationText(Duration.millis(mostMs))}: an operator can allow more (\`petrel tenant set --max-timeout\`)`
    }))

/** An endpoint after a change, and the secret generated for it, if any. */
interface ChangedEndpoint {
  readonly endpoint: Endpoint
  readonly made: string | undefined
}

/** What whoever asks for a change may change. */
interface AllowedChange extends Pick<Asker, "scopes"> {
  /** The longest time-out that the endpoint may be given, ms (`maxTimeoutFor`). */
  readonly maxTimeoutMs: number
}

/**
 * Returns an endpoint with its name and all settings at their defaults, and without a URL.
 *
 * @param now ms since the epoch.
 */
export const blankEndpoint = (
  { id, tenant }: EndpointName,
  generation: string,
  now: number
): Endpoint => ({
  v: 1,
  tenant,
  id,
  generation,
  ...initialOf(endpointSettings),
  secrets: [],
  createdAt: now,
  updatedAt: now
})

/**
 * Applies the given settings and keeps all others, but for credentials that the asker may not send
 * to another origin. Drops secrets that the scheme cannot use. Generates a secret if none is left.
 *
 * @param now ms since the epoch.
 */
export const changedEndpoint = Effect.fnUntraced(function* (
  before: Endpoint,
  patch: EndpointPatch,
  now: number,
  allowed: AllowedChange
) {
  const kept = mayKeepCredentials(before, patch.url ?? before.url, allowed)
  const after = changedSettings(kept, patch)
  const problems = [
    ...problemsOf(before, patch, after),
    ...timeoutProblems(patch, allowed.maxTimeoutMs)
  ]
  if (problems.length > 0) return yield* new Invalid({ problems })
  const { made, secrets } = yield* secretsFor(after.sign, before.secrets, patch.secret, now)
  const endpoint: Endpoint = {
    ...withoutSettings(endpointSettings, before),
    ...after,
    ...(patch.url === undefined ? {} : withKnownUrl(before)),
    secrets,
    updatedAt: now
  }
  return { endpoint, made } satisfies ChangedEndpoint
})

/** An endpoint that was made again without its URL may be resumed once it was given one. */
const withKnownUrl = ({ paused }: Endpoint): Pick<Endpoint, "paused"> => {
  if (paused === undefined) return {}
  const { lacksUrl: _, ...rest } = paused
  return { paused: rest }
}

/** Returns all settings after a change, with what follows from one for another. */
const changedSettings = (before: Endpoint, patch: EndpointPatch): Stored<EndpointSettings> => {
  const { signatureHeader, ...after } = settingsAfter(endpointSettings, before, patch)
  const sign = signAfter(before, patch)
  return {
    ...after,
    types: typesAfter(before, patch),
    sign,
    ...(sign === "stripe" && signatureHeader !== undefined ? { signatureHeader } : {})
  }
}

/** A new operational endpoint without types gets only its tenant's alerts. */
const typesAfter = (before: Endpoint, { operational, types }: EndpointPatch): Endpoint["types"] => {
  const asked = types ?? (operational === true && before.url === "" ? undefined : before.types)
  if (operational !== true) return asked ?? before.types
  const alerts = alertType(">")
  if (asked === undefined) return [alerts]
  return asked.includes(alerts) ? asked : [...asked, alerts]
}

/** Chat tools verify no signature: an endpoint that is made for one signs none unless it is asked to. */
const signAfter = (before: Endpoint, { format, sign }: EndpointPatch): Endpoint["sign"] =>
  sign ?? (before.url === "" && format === "slack" ? "none" : before.sign)

/** Returns what is wrong with the given settings, by themselves, with each other and with the endpoint. */
const problemsOf = (
  before: Endpoint,
  patch: EndpointPatch,
  after: Stored<EndpointSettings>
): ReadonlyArray<Problem> => {
  const { format, sign, types } = after
  const problems: Array<Problem> = []
  if (after.url === "") problems.push({ field: "url", message: "is missing" })
  const problem = patch.secret === undefined ? undefined : secretProblem(sign, patch.secret)
  if (problem !== undefined) problems.push({ field: "secret", message: `does not fit: ${problem}` })
  if (patch.signatureHeader !== undefined && sign !== "stripe")
    problems.push({
      field: "signatureHeader",
      message: `goes with \`sign\` stripe only, and this is ${sign}`
    })
  if (types.length > maxTypes)
    problems.push({
      field: "types",
      message: `would be ${types.length}, and an endpoint takes at most ${maxTypes} event types: use wildcards such as invoice.>, or a second endpoint`
    })
  if (format !== undefined && !getsOnlyAlerts(after))
    problems.push({
      field: "format",
      message:
        "slack is for an endpoint that gets nothing but alerts: give it `operational` alone, or `types` that begin with petrel.alert"
    })
  problems.push(...changeProblems(endpointSettings, before, patch))
  const equal = equalFilters(Object.keys(after.retryFor ?? {}))
  if (equal !== undefined) {
    const [one, other] = equal.filters.map((filter) => JSON.stringify(filter))
    problems.push({
      field: "retryFor",
      message: `${one} and ${other} win equally for an event type such as ${equal.type}: leave one out, or name more tokens in it`
    })
  }
  return [...problems, ...headerCollisions(after)]
}
