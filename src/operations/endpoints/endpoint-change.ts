import { Effect } from "effect"
import type { Endpoint } from "../../domain/endpoint.ts"
import { getsOnlyAlerts } from "../../domain/endpoint.ts"
import type { Problem } from "../../domain/problem.ts"
import { Invalid } from "../../domain/problem.ts"
import type { EndpointSettings } from "../../domain/settings/endpoint-table.ts"
import { endpointSettings, maxTypes } from "../../domain/settings/endpoint-table.ts"
import type { Stored } from "../../domain/settings/setting.ts"
import {
  changeProblems,
  initialOf,
  settingsAfter,
  withoutSettings
} from "../../domain/settings/setting.ts"
import { alertType } from "../../domain/type-filter.ts"
import { secretProblem } from "../../endpoints/signing.ts"
import { equalFilters } from "../../policy/type-choice.ts"
import type { Asker } from "../caller.ts"
import { secretsFor } from "./endpoint-secrets.ts"
import type { EndpointName, EndpointPatch } from "./endpoint-settings.ts"
import { headerCollisions } from "./header-collisions.ts"
import { mayKeepCredentials } from "./origin-change.ts"
import { timeoutProblems } from "./timeout-problems.ts"

/** An endpoint after a change, and the secret generated for it, if any. */
export interface ChangedEndpoint {
  readonly endpoint: Endpoint
  readonly made: string | undefined
}

/** What whoever asks for a change may change. */
export interface AllowedChange extends Pick<Asker, "scopes"> {
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
    secrets,
    updatedAt: now
  }
  return { endpoint, made } satisfies ChangedEndpoint
})

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
