import { Result, Schema } from "effect"
import { IpInterface, IpNetwork, NetAddress } from "effect/net"

const networks = (...texts: ReadonlyArray<string>) => texts.map(IpNetwork.fromStringUnsafe)

/** What of IPv4 no public receiver has, from IANA's special-purpose registry. */
const specialV4 = networks(
  "0.0.0.0/8", // this network; 0.0.0.0 reaches this host
  "10.0.0.0/8", // private
  "100.64.0.0/10", // shared by a carrier's customers; one cloud's metadata at 100.100.100.200
  "127.0.0.0/8", // loopback
  "168.63.129.16/32", // a cloud's host agent; public by number only, and in no registry
  "169.254.0.0/16", // link-local; most clouds' metadata at 169.254.169.254
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments; one cloud's metadata at 192.0.0.192
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays, given up
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarking
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4" // reserved, with the broadcast address
)

/**
 * All of IPv6's global unicast. Outside lie, among others, loopback, unique-local (with the
 * metadata at fd00:ec2::254), link-local, multicast, discard, and all local ways to write IPv4.
 */
const globalV6 = IpNetwork.fromStringUnsafe("2000::/3")

/** What of global unicast no public receiver has. */
const specialV6 = networks(
  "2001::/23", // protocol assignments: Teredo, benchmarking; the few reachable ones serve no web
  "2001:db8::/32", // documentation
  "3fff::/20" // documentation
)

const nat64 = IpNetwork.fromStringUnsafe("64:ff9b::/96")
const sixToFour = IpNetwork.fromStringUnsafe("2002::/16")

/** The IPv4 address that packets to such an IPv6 address end up at. */
const embeddedV4 = (address: NetAddress.Ipv6Address): NetAddress.Ipv4Address | undefined => {
  const octets = NetAddress.ipv6ToOctets(address)
  if (IpNetwork.contains(nat64, address))
    return NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(octets.slice(12, 16)))
  if (IpNetwork.contains(sixToFour, address))
    return NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(octets.slice(2, 6)))
  return undefined
}

const isPublic = (address: NetAddress.IpAddress): boolean => {
  const within = (network: IpNetwork.IpNetwork) => IpNetwork.contains(network, address)
  if (NetAddress.isIpv4Address(address)) return !specialV4.some(within)
  const embedded = embeddedV4(address)
  if (embedded !== undefined) return isPublic(embedded)
  return within(globalV6) && !specialV6.some(within)
}

/**
 * May a request be sent to this address? Only to public unicast ones, and to what is allowed by
 * configuration. What is no IP address is refused. An IPv4-mapped address (`::ffff:10.0.0.1`) is
 * judged as the IPv4 address it is connected to. A NAT64 or 6to4 address is refused where the IPv4
 * address inside is not public; to allow it, its IPv6 network must be allowed, since whose gateway
 * leads there is another question than whether the worker may reach the IPv4 network.
 *
 * Costs microseconds: meant for each connection, not for each request.
 *
 * @param ip as the resolver or the socket has it, with a zone (`fe80::1%eth0`) or without.
 * @param allowed networks from {@link parseNetwork}.
 */
export const isAllowedAddress = (
  ip: string,
  allowed: ReadonlyArray<IpNetwork.IpNetwork>
): boolean => {
  const parsed = NetAddress.ipFromString(ip.replace(/%.*$/, ""))
  if (Result.isFailure(parsed)) return false
  const address = NetAddress.toCanonical(parsed.success)
  return allowed.some((network) => IpNetwork.contains(network, address)) || isPublic(address)
}

/** A text that should be a network is none. */
export class InvalidNetwork extends Schema.TaggedError<InvalidNetwork>()("InvalidNetwork", {
  text: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `${JSON.stringify(this.text)} is not a network: ${this.problem}`
  }
}

const explain = (text: string): string =>
  Result.match(IpInterface.fromString(text), {
    onSuccess: (parsed) =>
      `the address has bits set beyond the prefix; did you mean ${IpNetwork.fromInterface(parsed)}?`,
    onFailure: () => "expected one such as 10.0.0.0/8 or fd00::/8, or a single address"
  })

/** An IPv4-mapped network is the IPv4 network it stands for, since addresses are judged in that form. */
const toNetwork = ({ address, prefixLength }: IpInterface.IpInterface) =>
  NetAddress.isIpv6Address(address) && NetAddress.isIpv4Mapped(address) && prefixLength >= 96
    ? IpNetwork.make(NetAddress.toCanonical(address), prefixLength - 96)
    : IpNetwork.make(address, prefixLength)

/** Reads a network in CIDR notation; a single address is a network of one. */
export const parseNetwork = (text: string): Result.Result<IpNetwork.IpNetwork, InvalidNetwork> =>
  IpInterface.fromString(text.trim()).pipe(
    Result.flatMap(toNetwork),
    Result.mapError(() => new InvalidNetwork({ text, problem: explain(text.trim()) }))
  )
