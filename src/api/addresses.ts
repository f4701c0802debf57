import { Result } from "effect"
import { IpNetwork } from "effect/net"
import { addressIn } from "../connections/network.ts"

/** Proxies that a request may pass one after the other; more entries of a header are not read. */
const maxProxies = 16

/**
 * Returns the address that a request comes from, in its shortest form: that of the connection or,
 * where a trusted proxy made it, the last one in X-Forwarded-For that no trusted proxy has. What
 * stands before that may be made up.
 *
 * @param peer the other end of the connection.
 * @param forwardedFor the value of X-Forwarded-For, if there is one.
 */
export const clientAddress = (
  peer: string,
  forwardedFor: string | undefined,
  proxies: ReadonlyArray<IpNetwork.IpNetwork>
): string | undefined => {
  const connected = addressIn(peer)
  if (Result.isFailure(connected)) return undefined
  let client = connected.success
  const entries = forwardedFor?.split(",").slice(-maxProxies) ?? []
  const isTrusted = () => proxies.some((network) => IpNetwork.contains(network, client))
  while (isTrusted()) {
    const entry = entries.pop()
    const before = entry === undefined ? undefined : addressIn(entry.trim())
    if (before === undefined || Result.isFailure(before)) break
    client = before.success
  }
  return String(client)
}

/** Names of this machine's loopback, under which browsers and clients on it reach a server. */
const loopbackNames = ["localhost", "127.0.0.1", "[::1]"]

/** Returns the name in a Host header, without its port, in lower case. */
export const hostName = (header: string): string => header.toLowerCase().replace(/:\d*$/, "")

/**
 * Returns the names under which a server is asked. Another one in a Host header is a page of a
 * browser on this machine whose name was made to point here (DNS rebinding).
 *
 * @param listenHost the address it listens on.
 * @param publicUrl the address that clients know it by.
 */
export const allowedHosts = (
  listenHost: string,
  publicUrl: string | undefined
): ReadonlySet<string> => {
  const own = listenHost.includes(":") ? `[${listenHost}]` : listenHost
  return new Set([
    ...loopbackNames,
    hostName(own.startsWith("[") ? `${own}:` : own),
    ...(publicUrl === undefined ? [] : [hostName(new URL(publicUrl).host)])
  ])
}

/** Returns true for an address that only this machine reaches. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host)
