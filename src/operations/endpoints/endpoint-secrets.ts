import { Effect } from "effect"
import type { Endpoint, Secret } from "../../domain/endpoint.ts"
import { generateSecret, publicKeyOf, secretProblem } from "../../endpoints/signing.ts"

/** The secrets of an endpoint after a change, and the one that was generated for it, if any. */
export interface ChangedSecrets {
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

/** Returns the public key for verification, if the scheme has one. */
export const publicKey = ({ secrets, sign }: Endpoint): string | undefined => {
  const [newest] = secrets
  return sign === "standard-ed25519" && newest !== undefined ? publicKeyOf(newest.value) : undefined
}
