import { Effect, Result } from "effect"
import { Flag } from "effect/cli"
import type { GenericHmacScheme } from "../../../providers/generic-hmac-scheme.ts"
import type { Provider } from "../../../providers/provider.ts"
import { providers } from "../../../providers/providers.ts"
import type { ProviderSettings } from "../../../providers/settings.ts"
import { readJson } from "../../flags/flag-problems.ts"
import { maybe, nameFlag, textFlag } from "../../flags/shared.ts"
import { refusal } from "../../refused.ts"

const names = [...providers.keys()].join(", ")

/** Flags that say whose webhooks they are, and what is known of the account there. */
export const providerFlags = {
  provider: nameFlag("provider", [...providers.keys()]).pipe(
    Flag.withMetavar("NAME"),
    Flag.withDescription(
      `Whose webhooks they are (default: Petrel's, of any scheme): ${names}; docs/reference/providers.md says what each signs`
    ),
    maybe
  ),
  publicUrl: textFlag(
    "public-url",
    "URL",
    "The URL that the provider was given, where it signs that: twilio, square, hubspot"
  ),
  webhookId: textFlag("webhook-id", "ID", "What the provider calls the webhook: paypal"),
  verifyToken: textFlag(
    "verify-token",
    "TEXT",
    "What the provider repeats when the webhook is set up: meta"
  ),
  scheme: textFlag(
    "scheme",
    "JSON",
    `How a sender of the provider hmac signs: '{"header":"x-acme-signature"}'`
  )
}

/** What the flags gave. */
export interface GivenProvider {
  readonly provider: string | undefined
  readonly publicUrl: string | undefined
  readonly webhookId: string | undefined
  readonly verifyToken: string | undefined
  readonly scheme: string | undefined
  readonly secret: ReadonlyArray<string>
  /** ms. */
  readonly tolerance: number | undefined
}

const flagNames: Readonly<Record<keyof ProviderSettings, string>> = {
  secrets: "--secret",
  toleranceMs: "--tolerance",
  publicUrl: "--public-url",
  webhookId: "--webhook-id",
  verifyToken: "--verify-token",
  scheme: "--scheme",
  certificate: "--provider",
  roots: "--provider"
}

const withNames = (problem: string): string =>
  problem.replaceAll(/`(\w+)`/g, (whole, name: string) =>
    Object.hasOwn(flagNames, name) ? flagNames[name as keyof ProviderSettings] : whole
  )

/**
 * Returns the provider that the flags are of, with its settings; undefined if none is named. Fails
 * with what is missing or makes no sense.
 *
 * @param certificate fetches a provider's certificate by its URL.
 */
export const readProvider = Effect.fnUntraced(function* (
  given: GivenProvider,
  certificate: (url: string) => Promise<string>
) {
  const { provider, publicUrl, scheme, secret, tolerance, verifyToken, webhookId } = given
  const known = provider === undefined ? undefined : providers.get(provider)
  if (known === undefined) {
    const alone = Object.entries({ publicUrl, webhookId, verifyToken, scheme }).flatMap(
      ([name, value]) =>
        value === undefined
          ? []
          : [`${flagNames[name as keyof ProviderSettings]} goes with --provider`]
    )
    return alone.length > 0 ? yield* refusal(alone) : undefined
  }
  const read =
    scheme === undefined
      ? undefined
      : readJson("--scheme", scheme, `an object such as {"header":"x-acme-signature"}`)
  if (read !== undefined && Result.isFailure(read)) return yield* refusal(read.failure)
  const settings: ProviderSettings = {
    ...(secret.length > 0 && { secrets: secret }),
    ...(tolerance !== undefined && { toleranceMs: tolerance }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(webhookId !== undefined && { webhookId }),
    ...(verifyToken !== undefined && { verifyToken }),
    // The provider checks each field of it.
    ...(read !== undefined && { scheme: read.success as GenericHmacScheme }),
    ...(known.settings.some(({ name }) => name === "certificate") && { certificate })
  }
  const problems = known.problems(settings)
  if (problems.length > 0) return yield* refusal(problems.map(withNames))
  const made: Provider = known.provide(settings)
  return { known, settings, provider: made }
})
