import { Effect } from "effect"
import type { IpNetwork } from "effect/net"
import { agent } from "../delivery/http/connector.ts"
import { ownAddresses } from "../delivery/http/this-host.ts"
import type { CheckedAccount } from "../intake/source-account.ts"
import { refusalOf } from "../policy/address.ts"
import type { Asked } from "../providers/listings/listing.ts"
import { type ApiOptions, makeApi } from "./api.ts"
import { type ListingApi, listingApi } from "./walk.ts"

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
