import { Effect } from "effect"
import type { Endpoint } from "../../domain/endpoint.ts"
import { getsOnlyAlerts, maxRetryFor, maxTypes } from "../../domain/endpoint.ts"
import type { HeaderNames } from "../../domain/header-names.ts"
import { identities, usualHeaderNames } from "../../domain/header-names.ts"
import type { Problem } from "../../domain/problem.ts"
import { Invalid } from "../../domain/problem.ts"
import { alertType } from "../../domain/type-filter.ts"
import { secretProblem } from "../../endpoints/signing.ts"
import { equalFilters } from "../../policy/type-choice.ts"
import { secretsFor } from "./endpoint-secrets.ts"
import type { EndpointName, EndpointPatch } from "./endpoint-settings.ts"
import { forwardHeadersAfter } from "./forward-headers.ts"
import { headerCollisions } from "./header-collisions.ts"

/** An endpoint after a change, and the secret generated for it, if any. */
export interface ChangedEndpoint {
  readonly endpoint: Endpoint
  readonly made: string | undefined
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

/** Returns a setting after a change: undefined keeps it, null removes it. */
const after = <A>(given: A | null | undefined, before: A | undefined): A | undefined =>
  given === undefined ? before : (given ?? undefined)

/**
 * Applies the given settings and keeps all others. Drops secrets that the scheme cannot use.
 * Generates a secret if none is left.
 *
 * @param now ms since the epoch.
 */
export const changedEndpoint = Effect.fnUntraced(function* (
  before: Endpoint,
  patch: EndpointPatch,
  now: number
) {
  const problems = problemsOf(before, patch)
  if (problems.length > 0) return yield* new Invalid({ problems })
  const sign = signAfter(before, patch)
  const { made, secrets } = yield* secretsFor(sign, before.secrets, patch.secret, now)
  const {
    adapt: oldAdapt,
    alerts: oldAlerts,
    circuit: oldCircuit,
    connectTimeout: oldConnectTimeout,
    contact: oldContact,
    format: oldFormat,
    forwardHeaders: oldForwards = [],
    headerNames: oldNames,
    rate: oldRate,
    retryFor: oldRetryFor,
    signatureHeader: oldHeader,
    timeout: oldTimeout,
    ...rest
  } = before
  const signatureHeader = sign === "stripe" ? (patch.signatureHeader ?? oldHeader) : undefined
  const timeout = after(patch.timeout, oldTimeout)
  const connectTimeout = after(patch.connectTimeout, oldConnectTimeout)
  const rate = after(patch.rate, oldRate)
  const contact = after(patch.contact, oldContact)
  const format = after(patch.format, oldFormat)
  const alerts = patch.alerts ?? oldAlerts ?? {}
  const circuit = patch.circuit ?? oldCircuit ?? {}
  const { names: forwardHeaders } = forwardHeadersAfter(oldForwards, patch.forwardHeaders ?? {})
  const retryFor = retryForAfter(oldRetryFor, patch)
  const headerNames = headerNamesAfter(oldNames, patch)
  const endpoint: Endpoint = {
    ...rest,
    url: patch.url ?? before.url,
    types: typesAfter(before, patch),
    sign,
    secrets,
    retry: patch.retry ?? before.retry,
    maxInFlight: patch.maxInFlight ?? before.maxInFlight,
    redirects: patch.redirects ?? before.redirects,
    headers: headersAfter(before.headers, patch.headers ?? {}),
    updatedAt: now,
    ...(signatureHeader === undefined ? {} : { signatureHeader }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(connectTimeout === undefined ? {} : { connectTimeout }),
    ...((patch.adapt ?? oldAdapt) ? { adapt: true } : {}),
    ...(rate === undefined ? {} : { rate }),
    ...(Object.keys(retryFor).length === 0 ? {} : { retryFor }),
    ...(Object.keys(headerNames).length === 0 ? {} : { headerNames }),
    ...(Object.keys(circuit).length === 0 ? {} : { circuit }),
    ...(contact === undefined ? {} : { contact }),
    ...(format === undefined ? {} : { format }),
    ...(forwardHeaders.length === 0 ? {} : { forwardHeaders }),
    ...(Object.keys(alerts).length === 0 ? {} : { alerts })
  }
  return { endpoint, made } satisfies ChangedEndpoint
})

/** A new operational endpoint without types gets only its tenant's alerts. */
const typesAfter = (before: Endpoint, { operational, types }: EndpointPatch): Endpoint["types"] => {
  const asked = types ?? (operational === true && before.url === "" ? undefined : before.types)
  if (operational !== true) return asked ?? before.types
  const alerts = alertType(">")
  if (asked === undefined) return [alerts]
  return asked.includes(alerts) ? asked : [...asked, alerts]
}

/** Header names are case-insensitive: a given header replaces the existing one. */
const headersAfter = (
  before: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>
): Record<string, string> => {
  const changed = new Set(Object.keys(changes).map((name) => name.toLowerCase()))
  const kept = Object.entries(before).filter(([name]) => !changed.has(name.toLowerCase()))
  const given = Object.entries(changes).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const]
  )
  return Object.fromEntries([...kept, ...given])
}

const retryForAfter = (
  before: Endpoint["retryFor"],
  { retryFor = {} }: EndpointPatch
): NonNullable<Endpoint["retryFor"]> => {
  const after = new Map(Object.entries(before ?? {}))
  for (const [types, retry] of Object.entries(retryFor))
    if (retry === null) after.delete(types)
    else after.set(types, retry)
  return Object.fromEntries(after)
}

/** A usual name is not stored. */
const headerNamesAfter = (
  before: HeaderNames | undefined,
  { headerNames = {} }: EndpointPatch
): HeaderNames => {
  const after: { -readonly [Key in keyof HeaderNames]: HeaderNames[Key] } = {}
  for (const identity of identities) {
    const given = headerNames[identity]
    const name = given === undefined ? before?.[identity] : (given ?? undefined)
    if (name !== undefined && name.toLowerCase() !== usualHeaderNames[identity])
      after[identity] = name
  }
  return after
}

/** Returns what of the policies for event types is wrong after a change. */
const retryForProblems = (before: Endpoint, patch: EndpointPatch): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  for (const [types, retry] of Object.entries(patch.retryFor ?? {}))
    if (retry === null && !Object.hasOwn(before.retryFor ?? {}, types))
      problems.push({
        field: `retryFor.${types}`,
        message: "names event types that have no retry policy of their own"
      })
  const filters = Object.keys(retryForAfter(before.retryFor, patch))
  if (filters.length > maxRetryFor)
    problems.push({
      field: "retryFor",
      message: `would be ${filters.length}, and an endpoint takes at most ${maxRetryFor} retry policies for event types: use wildcards such as invoice.>, or a second endpoint`
    })
  const equal = equalFilters(filters)
  if (equal !== undefined) {
    const [one, other] = equal.filters.map((filter) => JSON.stringify(filter))
    problems.push({
      field: "retryFor",
      message: `${one} and ${other} win equally for an event type such as ${equal.type}: leave one out, or name more tokens in it`
    })
  }
  return problems
}

/** Chat tools verify no signature: an endpoint that is made for one signs none unless it is asked to. */
const signAfter = (before: Endpoint, { format, sign }: EndpointPatch): Endpoint["sign"] =>
  sign ?? (before.url === "" && format === "slack" ? "none" : before.sign)

/** Returns what is wrong with a format after a change. */
const formatProblems = (before: Endpoint, patch: EndpointPatch): ReadonlyArray<Problem> => {
  if (after(patch.format, before.format) === undefined) return []
  return getsOnlyAlerts({ types: typesAfter(before, patch) })
    ? []
    : [
        {
          field: "format",
          message:
            "slack is for an endpoint that gets nothing but alerts: give it `operational` alone, or `types` that begin with petrel.alert"
        }
      ]
}

/** Returns what of the given settings does not go with each other or with the endpoint. */
const problemsOf = (before: Endpoint, patch: EndpointPatch): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const sign = signAfter(before, patch)
  if (before.url === "" && patch.url === undefined)
    problems.push({ field: "url", message: "is missing" })
  const problem = patch.secret === undefined ? undefined : secretProblem(sign, patch.secret)
  if (problem !== undefined) problems.push({ field: "secret", message: `does not fit: ${problem}` })
  if (patch.signatureHeader !== undefined && sign !== "stripe")
    problems.push({
      field: "signatureHeader",
      message: `goes with \`sign\` stripe only, and this is ${sign}`
    })
  const { length } = typesAfter(before, patch)
  if (length > maxTypes)
    problems.push({
      field: "types",
      message: `would be ${length}, and an endpoint takes at most ${maxTypes} event types: use wildcards such as invoice.>, or a second endpoint`
    })
  const current = Object.keys(before.headers).map((name) => name.toLowerCase())
  for (const [name, value] of Object.entries(patch.headers ?? {}))
    if (value === null && !current.includes(name.toLowerCase()))
      problems.push({ field: `headers.${name}`, message: "names a header that is not set" })
  const forwards = forwardHeadersAfter(before.forwardHeaders ?? [], patch.forwardHeaders ?? {})
  problems.push(
    ...formatProblems(before, patch),
    ...retryForProblems(before, patch),
    ...forwards.problems,
    ...headerCollisions({
      sign,
      signatureHeader: patch.signatureHeader ?? before.signatureHeader,
      headerNames: headerNamesAfter(before.headerNames, patch),
      headers: headersAfter(before.headers, patch.headers ?? {}),
      forwardHeaders: forwards.names
    })
  )
  return problems
}
