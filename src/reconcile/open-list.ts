import { Effect, Result } from "effect"
import type { IpNetwork } from "effect/net"
import { agent } from "../delivery/http/connector.ts"
import { ownAddresses } from "../delivery/http/this-host.ts"
import type { Source } from "../domain/source.ts"
import { refusalOf } from "../policy/address.ts"
import type { Asked, Listing } from "../providers/listings/listing.ts"
import { listings } from "../providers/listings/listings.ts"
import { makeApi } from "./api.ts"
import { NotReconciled } from "./reconcile.ts"
import { type ListingApi, listingApi } from "./walk.ts"

/** What is known of an account at a provider's API. */
export interface ApiAccount {
  /** Undefined where none is given. */
  readonly key: string | undefined
  /** (Default: the provider's own) */
  readonly url?: string | undefined
  /** Which webhook of the provider's. */
  readonly webhook?: string | undefined
}

export interface OpenOptions {
  readonly account: ApiAccount
  readonly asked: Pick<Asked, "since" | "until">
  /** Networks that may be asked beside public addresses. */
  readonly networks: ReadonlyArray<IpNetwork.IpNetwork>
  /** See `ApiOptions`. */
  readonly firstPauseMs?: number | undefined
}

/** An account with which a list can be asked for. */
interface CheckedAccount {
  readonly listing: Listing
  readonly url: string
  readonly webhook: string
}

const urlProblem = (
  url: string | undefined,
  isLocal: boolean,
  title: string
): string | undefined => {
  if (url === undefined) return `say where the API of ${title} is (--api-url)`
  const {
    hash = "",
    protocol = "",
    search = "",
    username = ""
  } = URL.canParse(url) ? new URL(url) : {}
  if (!/^https?:$/.test(protocol) || search !== "" || hash !== "" || username !== "")
    return "the API's URL must be such as https://gitlab.example.com/api/v4, without a login or a query"
  // The credentials would be readable on the way.
  return protocol === "http:" && !isLocal
    ? "the API's URL must begin with https: (http: only with --allow-network, for your own network)"
    : undefined
}

/** Returns an account with what is usual for its provider, or what is wrong with it. */
export const checkAccount = (
  { provider, webhookId }: Pick<Source, "provider" | "webhookId">,
  { key, url: givenUrl, webhook: given }: ApiAccount,
  mayBeLocal: boolean
): Result.Result<CheckedAccount, ReadonlyArray<string>> => {
  const listing = listings.get(provider)
  if (listing === undefined)
    return Result.fail([
      `${provider} has no API that lists what it has sent: have a command list the ids (--command)`
    ])
  const { title, webhook: form } = listing
  const url = givenUrl ?? listing.url
  const webhook = given ?? webhookId ?? ""
  const problems = [
    ...(key === undefined
      ? [
          `say the credentials for the API of ${title}, ${listing.key}: --api-key-file FILE or PETREL_API_KEY`
        ]
      : []),
    ...[urlProblem(url, mayBeLocal, title) ?? []].flat(),
    ...(webhook === "" && !form.isRequired
      ? []
      : form.form.test(webhook)
        ? []
        : [`--webhook must be ${form.text}, such as ${form.example}`])
  ]
  return problems.length > 0 || url === undefined
    ? Result.fail(problems)
    : Result.succeed({ listing, url, webhook })
}

/**
 * Opens the list of a source's provider for a scope. Requests go to public addresses, and to the
 * networks that are allowed. Fails with NotReconciled where something is missing for it.
 */
export const openList = Effect.fnUntraced(function* (
  source: Source,
  { account, asked, firstPauseMs, networks }: OpenOptions
) {
  const checked = checkAccount(source, account, networks.length > 0)
  if (Result.isFailure(checked))
    return yield* new NotReconciled({ message: checked.failure.join("; ") })
  const { listing, url, webhook } = checked.success
  const client = yield* agent({
    refuses: (ip, port) => refusalOf(ip, port, { networks, ports: [] }, ownAddresses())
  })
  const { perSecond, title } = listing
  const api = makeApi({ title, url, agent: client, perSecond, firstPauseMs })
  const list: ListingApi = listingApi(listing, { ...asked, webhook }, api, account.key ?? "")
  return list
})
