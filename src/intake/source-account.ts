import { Result } from "effect"
import type { Problem } from "../domain/problem.ts"
import type { Source } from "../domain/source.ts"
import type { Listing } from "../providers/listings/listing.ts"
import { listings } from "../providers/listings/listings.ts"

/** What a source tells of its account at the provider's API. */
export type ApiAccount = Pick<Source, "provider" | "apiKey" | "apiUrl" | "webhookId">

/** An account with which a list can be asked for. */
export interface CheckedAccount {
  readonly listing: Listing
  readonly key: string
  readonly url: string
  /** "" where none is named. */
  readonly webhook: string
}

const noUrl = { protocol: "", search: "", hash: "", username: "" }

const urlProblem = (url: string, mayBeLocal: boolean): string | undefined => {
  const { hash, protocol, search, username } = URL.canParse(url) ? new URL(url) : noUrl
  if (!/^https?:$/.test(protocol) || search !== "" || hash !== "" || username !== "")
    return "must be the URL of an API such as https://gitlab.example.com/api/v4, without a login or a query"
  // The credentials would be readable on the way.
  return protocol === "http:" && !mayBeLocal
    ? "must begin with https:, or with http: to a network of your own that is allowed"
    : undefined
}

/**
 * Returns an account with what is usual for its provider, or what is wrong with it or missing.
 *
 * @param mayBeLocal the API may be in one's own network, without TLS.
 */
export const checkAccount = (
  { apiKey, apiUrl, provider, webhookId = "" }: ApiAccount,
  mayBeLocal: boolean
): Result.Result<CheckedAccount, ReadonlyArray<Problem>> => {
  const listing = listings.get(provider)
  if (listing === undefined)
    return Result.fail([
      {
        field: "",
        message: `${provider} has no API that lists what it has sent. These have one: ${[...listings.keys()].join(", ")}. For others, a command can list the ids (\`petrel reconcile --command\`)`
      }
    ])
  const { key, title, url: usualUrl, webhook: form } = listing
  const url = apiUrl ?? usualUrl
  const problems: Array<Problem> = []
  const add = (field: string, message: string) => problems.push({ field, message })
  if (apiKey === undefined)
    add("apiKey", `is missing: the credentials for the API of ${title}, ${key}`)
  const wrongUrl = url === undefined ? undefined : urlProblem(url, mayBeLocal)
  if (url === undefined) add("apiUrl", `is missing: where the API of ${title} is`)
  if (wrongUrl !== undefined) add("apiUrl", wrongUrl)
  if ((webhookId !== "" || form.isRequired) && !form.form.test(webhookId))
    add("webhookId", `must be ${form.text}, such as ${form.example}`)
  return problems.length > 0 || url === undefined || apiKey === undefined
    ? Result.fail(problems)
    : Result.succeed({ listing, key: apiKey, url, webhook: webhookId })
}
