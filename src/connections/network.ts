import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** Bits of the network that one client of IPv6 has to itself, in which it can take any address. */
const networkBits = 64

/** Parses an address as sockets and proxies write it: with a zone or a port, IPv6 in brackets. */
export const addressIn = (text: string) => {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? text.replace(/^([\d.]+):\d+$/, "$1")
  return Result.map(NetAddress.ipFromString(bare.replace(/%.*$/, "")), (address) =>
    NetAddress.toCanonical(address)
  )
}

/**
 * Returns what clients without a token are counted by: the address, or with IPv6 its network of 64
 * bits. What is no address is returned as it is.
 */
export const networkOf = (address: string): string => {
  const parsed = addressIn(address)
  if (Result.isFailure(parsed)) return address
  const { success: client } = parsed
  if (NetAddress.isIpv4Address(client)) return String(client)
  return String(IpNetwork.fromAddressUnsafe(client, networkBits))
}
