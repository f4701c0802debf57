import { Effect, Result } from "effect"
import { parseNetwork } from "../../policy/address.ts"
import { refusal } from "../refused.ts"
import { readGivenSecret } from "./secret-flags.ts"
import { repeated, textFlag } from "./shared.ts"

/** The environment variable with credentials for a provider's API. */
export const apiKeyVariable = "PETREL_API_KEY"

/** @param usual what holds without them, as a part of a sentence. */
export const apiKeyFlags = (usual: string) => ({
  apiKeyFile: textFlag(
    "api-key-file",
    "FILE",
    `The credentials for the provider's API (default: ${usual})`
  ),
  apiKey: textFlag("api-key", "-", "The same from standard input")
})

/**
 * Returns the credentials of the flags, if there are any.
 *
 * @param usual without a flag.
 */
export const readApiKey = Effect.fnUntraced(function* (
  flag: { readonly apiKey: string | undefined; readonly apiKeyFile: string | undefined },
  usual?: string
) {
  const { apiKey, apiKeyFile } = flag
  if (apiKey !== undefined && apiKey !== "-")
    return yield* refusal([
      "--api-key takes -, for standard input: other users of this machine would see credentials there; or use --api-key-file FILE"
    ])
  const given = yield* readGivenSecret("api-key", { secret: apiKey, secretFile: apiKeyFile })
  return given ?? (usual?.trim() || undefined)
})

/** Networks that providers' APIs may be in beside public addresses. */
export const apiNetworkFlag = repeated(
  "allow-network",
  "CIDR",
  "A private network that a provider's API may be in, such as 10.1.0.0/16"
)

/** Parses `--allow-network`. Fails with the problems of all invalid values. */
export const readApiNetworks = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
  const parsed = texts.map(parseNetwork)
  const problems = parsed.flatMap((one) => (Result.isFailure(one) ? [one.failure.message] : []))
  if (problems.length > 0) return yield* refusal(problems.map((text) => `--allow-network ${text}`))
  return parsed.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
})
