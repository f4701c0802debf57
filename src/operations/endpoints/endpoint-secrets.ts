import { Clock, Duration, Effect, Schema } from "effect"
import { durationBetween, longestDuration } from "../../domain/duration.ts"
import type { Endpoint, Secret } from "../../domain/endpoint.ts"
import { type EndpointName, endpointLabel } from "../../domain/endpoint.ts"
import { type ExpectedRevision, invalid, notNow } from "../../domain/problem.ts"
import { changeEndpoint } from "../../endpoints/endpoint-store.ts"
import { generateSecret, secretProblem } from "../../endpoints/signing.ts"
import { EndpointView, endpointView } from "./endpoint-view.ts"

/** The secrets of an endpoint after a change, and the one that was generated for it, if any. */
interface ChangedSecrets {
  readonly secrets: ReadonlyArray<Secret>
  readonly made: string | undefined
}

/**
 * Returns the secrets for a scheme: the given one, or the existing ones that the scheme can use, or
 * a new one.
 *
 * @param now ms since the epoch.
 */
export const secretsFor = Effect.fnUntraced(function* (
  sign: Endpoint["sign"],
  before: ReadonlyArray<Secret>,
  given: string | undefined,
  now: number
) {
  if (sign === "none") return { secrets: [], made: undefined } satisfies ChangedSecrets
  if (given !== undefined)
    return { secrets: [{ value: given, createdAt: now }], made: undefined } satisfies ChangedSecrets
  const fits = ({ value }: Secret) => secretProblem(sign, value) === undefined
  const [newest] = before
  if (newest !== undefined && fits(newest))
    return { secrets: before.filter(fits), made: undefined } satisfies ChangedSecrets
  const made = yield* generateSecret(sign)
  return { secrets: [{ value: made, createdAt: now }], made } satisfies ChangedSecrets
})

/**
 * Prepends a new secret, or one of the existing ones, to which a rotation goes back. The others
 * remain valid for a while.
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
    .filter((secret) => secret.value !== value)
    .map((secret) => ({
      ...secret,
      until: Math.min(secret.until ?? Number.POSITIVE_INFINITY, now + keepOld)
    }))
    .filter(({ until }) => until > now)
  return [{ value, createdAt: now }, ...old]
}

/** What a rotation of an endpoint's secret asks for. */
export const Rotation = Schema.Struct({
  secret: Schema.optional(Schema.String).annotateKey({
    description: "(Default: a new one is generated)"
  }),
  /** How long the old secrets sign, too. Zero drops them at once. */
  keepOld: durationBetween([0, "0 seconds"], longestDuration)
})
export type Rotation = typeof Rotation.Type

/** An endpoint with a new secret, which is shown if it was generated. */
export const RotatedEndpoint = Schema.Struct({
  ...EndpointView.fields,
  secret: Schema.optionalKey(Schema.String)
})
export type RotatedEndpoint = typeof RotatedEndpoint.Type

const problemOf = (endpoint: Endpoint, secret: string | undefined) => {
  const label = endpointLabel(endpoint)
  if (endpoint.sign === "none")
    return notNow(
      `${label} is not signed, so it has no secret: set \`sign\` first (\`petrel endpoint set ${label} --sign standard\`)`
    )
  const problem = secret === undefined ? undefined : secretProblem(endpoint.sign, secret)
  if (problem !== undefined) return invalid("secret", `does not fit: ${problem}`)
  return secret !== undefined && endpoint.secrets[0]?.value === secret
    ? invalid(
        "secret",
        `is the one that ${label} has already: give another, or leave it out for a new one`
      )
    : undefined
}

/**
 * Gives an endpoint a new secret. The old ones remain valid for a while.
 *
 * @param by who asks for it, recorded in the history.
 * @param expected the revisions that may be changed; fails with EndpointChanged for another.
 *   (Default: any)
 */
export const rotateSecret = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  { keepOld, secret }: Rotation,
  by: string,
  expected?: ExpectedRevision
) {
  const now = yield* Clock.currentTimeMillis
  let made: string | undefined
  const change = Effect.fnUntraced(function* (endpoint: Endpoint) {
    const problem = problemOf(endpoint, secret)
    if (problem !== undefined) return yield* problem
    if (endpoint.sign === "none") return undefined
    const value = secret ?? (yield* generateSecret(endpoint.sign))
    made = secret === undefined ? value : undefined
    const secrets = rotatedSecrets(endpoint.secrets, value, Duration.toMillis(keepOld), now)
    return { ...endpoint, secrets, updatedAt: now }
  })
  const stored = yield* changeEndpoint(tenant, id, change, { by, expected })
  return {
    ...endpointView(stored),
    ...(made === undefined ? {} : { secret: made })
  } satisfies RotatedEndpoint
})
