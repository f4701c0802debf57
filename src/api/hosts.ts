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
