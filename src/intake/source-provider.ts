import { Duration, Result } from "effect"
import { present } from "../domain/record.ts"
import type { Source } from "../domain/source.ts"
import type { GenericHmacScheme } from "../providers/generic-hmac-scheme.ts"
import { listings } from "../providers/listings/listings.ts"
import type { Provider } from "../providers/provider.ts"
import { providers } from "../providers/providers.ts"
import type { ProviderSettings } from "../providers/settings.ts"

/** Fetches a provider's certificate by its URL, in PEM. */
export type FetchCertificate = (url: string) => Promise<string>

/** Returns the secrets that hold at a time, ms since the epoch. */
const secretsAt = ({ secrets }: Pick<Source, "secrets">, now: number): ReadonlyArray<string> =>
  secrets.filter(({ until }) => until === undefined || until > now).map(({ value }) => value)

const settingsOf = (
  source: Source,
  now: number,
  certificate: FetchCertificate
): ProviderSettings => {
  const { publicUrl, scheme, tolerance, verifyToken, webhookId } = source
  const secrets = secretsAt(source, now)
  const takes = (name: string) =>
    providers.get(source.provider)?.settings.some((setting) => setting.name === name) === true
  // Of others only the API needs to know it.
  const isOfApi = listings.has(source.provider) && !takes("webhookId")
  return {
    ...present({ publicUrl, verifyToken, webhookId: isOfApi ? undefined : webhookId }),
    ...(tolerance === undefined ? {} : { toleranceMs: Duration.toMillis(tolerance) }),
    // The provider checks each field of it.
    ...(scheme === undefined ? {} : { scheme: scheme as unknown as GenericHmacScheme }),
    ...(secrets.length === 0 ? {} : { secrets }),
    ...(takes("certificate") ? { certificate } : {})
  }
}

/**
 * Returns the provider of a source, or why its settings make none, in sentences that show no secret.
 *
 * @param now ms since the epoch: a secret that was replaced holds until its time.
 */
export const providerOf = (
  source: Source,
  now: number,
  certificate: FetchCertificate
): Result.Result<Provider, ReadonlyArray<string>> => {
  const known = providers.get(source.provider)
  if (known === undefined)
    return Result.fail([
      `there is no provider ${JSON.stringify(source.provider)}: there are ${[...providers.keys()].join(", ")}`
    ])
  const settings = settingsOf(source, now, certificate)
  const problems = known.problems(settings)
  return problems.length > 0 ? Result.fail(problems) : Result.succeed(known.provide(settings))
}

/** Returns when a secret of a source stops to hold next, ms since the epoch; undefined if none does. */
export const secretsHoldUntil = ({ secrets }: Source, now: number): number | undefined => {
  const ends = secrets.flatMap(({ until }) => (until !== undefined && until > now ? [until] : []))
  return ends.length === 0 ? undefined : Math.min(...ends)
}
