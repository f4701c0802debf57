import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { IpNetwork } from "effect/net"
import { agent } from "../delivery/http/connector.ts"
import { ownAddresses } from "../delivery/http/this-host.ts"
import type { CheckedAccount } from "../intake/source-account.ts"
import { refusalOf } from "../policy/address.ts"
import { bodyJson } from "../providers/body.ts"
import type {
  ApiAnswer,
  ApiRequest,
  Asked,
  Listed,
  Listing
} from "../providers/listings/listing.ts"
import { type Api, ApiFailed, type ApiOptions, makeApi } from "./api.ts"
import type { StateOf } from "./arrivals.ts"
import type { Obtained } from "./comparison.ts"

/** Pages of one list: 2 million events of 100 a page. A list that is longer has no end. */
const maxPages = 20_000

/** A provider's API, as a reconciliation uses it. */
export interface ListingApi {
  /** The types that the webhook gets; undefined where that is not known, and for all. */
  readonly types: Effect.Effect<ReadonlyArray<string> | undefined, ApiFailed>
  /** Hands over the list, page by page. A page whose request fails is asked for again by itself. */
  readonly walk: <E, R>(
    take: (page: ReadonlyArray<Listed>) => Effect.Effect<void, E, R>
  ) => Effect.Effect<void, ApiFailed | E, R>
  /** Where states are listed: what an event that came in says of one; undefined for all others. */
  readonly stateOf?: StateOf | undefined
  /** Fetches an event that is missing, or asks for it. */
  readonly obtain: (listed: Listed) => Effect.Effect<Obtained, ApiFailed>
}

/** Returns what asks a provider's API for a list, and for events of it. */
export const listingApi = (listing: Listing, asked: Asked, api: Api, key: string): ListingApi => {
  const { fetch, login, resend, title } = listing
  const unreadable = () =>
    new ApiFailed({ message: `${title} answers in another form than it documents` })
  /** The key, or the token that it was exchanged for. */
  let authorization: Readonly<Record<string, string>> | undefined
  const authorize = Effect.gen(function* () {
    if (login === undefined) return listing.authorize(key)
    const token = login.token(yield* api.ask(login.request(key), {}))
    return token === undefined ? yield* unreadable() : listing.authorize(token)
  })
  const authorized = Effect.gen(function* () {
    authorization ??= yield* authorize
    return authorization
  })
  const ask = (request: ApiRequest): Effect.Effect<ApiAnswer, ApiFailed> =>
    Effect.flatMap(authorized, (headers) => api.ask(request, headers)).pipe(
      // A token holds for some hours, and a long list may take longer.
      Effect.catchIf(
        ({ status }) => status === 401 && login !== undefined && authorization !== undefined,
        () => {
          authorization = undefined
          return Effect.flatMap(authorized, (headers) => api.ask(request, headers))
        }
      )
    )

  const walk: ListingApi["walk"] = Effect.fnUntraced(function* (take) {
    const seen = new Set<string>()
    let cursor: string | undefined
    while (true) {
      const page = listing.read(yield* ask(listing.page(asked, cursor)), asked, cursor)
      if (page === undefined) return yield* unreadable()
      yield* take(page.listed)
      if (page.next === undefined) return
      cursor = page.next
      const mark = createHash("sha256").update(cursor).digest("base64").slice(0, 16)
      if (seen.has(mark) || seen.size >= maxPages)
        return yield* new ApiFailed({
          message: seen.has(mark)
            ? `${title} lists the same page again and again`
            : `${title} has listed ${maxPages} pages, and there are more: ask for a shorter time`
        })
      seen.add(mark)
    }
  })

  const obtain = Effect.fnUntraced(function* (
    listed: Listed
  ): Effect.fn.Return<Obtained, ApiFailed> {
    if (listed.carried !== undefined) return { as: "carried", carried: listed.carried }
    if (fetch !== undefined) {
      const fetched = yield* Effect.result(ask(fetch.request(asked, listed)))
      if (fetched._tag === "Failure") {
        const { isTooLarge, message, status } = fetched.failure
        // It was listed, and is gone since, or no event may be so large.
        if (status === 404 || status === 410 || isTooLarge) return { as: "not-had", why: message }
        return yield* fetched.failure
      }
      const carried = fetch.carried(fetched.success)
      if (carried !== undefined) return { as: "carried", carried }
    }
    if (resend === undefined)
      return { as: "not-had", why: `${title} lists it, and does not show it` }
    const sent = yield* Effect.result(ask(resend(asked, listed)))
    if (sent._tag === "Success") return { as: "asked" }
    const { message, status } = sent.failure
    return status === undefined || status === 401
      ? yield* sent.failure
      : { as: "not-had", why: message }
  })

  const types: ListingApi["types"] = Effect.gen(function* () {
    const request = listing.subscription?.request(asked)
    if (request === undefined) return undefined
    return listing.subscription?.types(yield* ask(request)) ?? (yield* unreadable())
  })
  const { states } = listing
  const stateOf: StateOf | undefined =
    states === undefined
      ? undefined
      : (type, body) => (states.isOf(type, asked) ? states.stateOf(bodyJson(body)) : undefined)
  return { types, walk, obtain, stateOf }
}

export interface OpenOptions extends Pick<ApiOptions, "firstPauseMs" | "onWait"> {
  readonly asked: Pick<Asked, "since" | "until">
  /** Networks that may be asked beside public addresses. */
  readonly networks: ReadonlyArray<IpNetwork.IpNetwork>
}

/**
 * Opens the list of a provider for a scope. Requests go to public addresses, and to the networks that
 * are allowed.
 */
export const openList = Effect.fnUntraced(function* (
  { key, listing, url, webhook }: CheckedAccount,
  { asked, firstPauseMs, networks, onWait }: OpenOptions
) {
  const client = yield* agent({
    refuses: (ip, port) => refusalOf(ip, port, { networks, ports: [] }, ownAddresses())
  })
  const { perSecond, title } = listing
  const api = makeApi({ title, url, agent: client, perSecond, firstPauseMs, onWait })
  const list: ListingApi = listingApi(listing, { ...asked, webhook }, api, key)
  return list
})
