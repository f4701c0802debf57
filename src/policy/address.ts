import { Result, Schema } from "effect"
import { IpInterface, IpNetwork, NetAddress } from "effect/net"

const networks = (...texts: ReadonlyArray<string>) => texts.map(IpNetwork.fromStringUnsafe)

/** IPv4 networks without public receivers, from IANA's special-purpose registry. */
const specialV4 = networks(
  "0.0.0.0/8", // this network; 0.0.0.0 reaches this host
  "10.0.0.0/8", // private
  "100.64.0.0/10", // shared address space of carriers; one cloud's metadata at 100.100.100.200
  "127.0.0.0/8", // loopback
  "168.63.129.16/32", // a cloud's host agent; public by number only, not in the registry
  "169.254.0.0/16", // link-local; most clouds' metadata at 169.254.169.254
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments; one cloud's metadata at 192.0.0.192
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays, deprecated
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarking
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4" // reserved, including the broadcast address
)

/**
 * All of IPv6's global unicast. Outside of it are loopback, unique-local (with the metadata at
 * fd00:ec2::254), link-local, multicast, discard-only, and all local encodings of IPv4, among
 * others.
 */
const globalV6 = IpNetwork.fromStringUnsafe("2000::/3")

/** Networks of global unicast without public receivers. */
const specialV6 = networks(
  "2001::/23", // protocol assignments: Teredo, benchmarking; the few reachable ones serve no web
  "2001:db8::/32", // documentation
  "3fff::/20" // documentation
)

const nat64 = IpNetwork.fromStringUnsafe("64:ff9b::/96")
const sixToFour = IpNetwork.fromStringUnsafe("2002::/16")

/** Returns true for an interface id made of an IPv4 address (ISATAP), under any prefix. */
const isIsatap = (octets: ReadonlyArray<number> | Uint8Array): boolean =>
  (octets[8] === 0 || octets[8] === 2) &&
  octets[9] === 0 &&
  octets[10] === 0x5e &&
  octets[11] === 0xfe

/** Returns the IPv4 addresses that a gateway may forward packets for this IPv6 address to. */
const embeddedV4 = (address: NetAddress.Ipv6Address): ReadonlyArray<NetAddress.Ipv4Address> => {
  const octets = NetAddress.ipv6ToOctets(address)
  const at = (start: number) =>
    NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(octets.slice(start, start + 4)))
  return [
    ...(IpNetwork.contains(nat64, address) || isIsatap(octets) ? [at(12)] : []),
    ...(IpNetwork.contains(sixToFour, address) ? [at(2)] : [])
  ]
}

/** The destinations that requests may reach. */
export interface Reach {
  /** Networks in which every address and port is allowed. */
  readonly networks: ReadonlyArray<IpNetwork.IpNetwork>
  /** Ports allowed at public addresses in addition to {@link usualPorts}; `any` allows all. */
  readonly ports: "any" | ReadonlyArray<number>
}

/** Returns the union of two reaches. */
export const bothReaches = (one: Reach, other: Reach): Reach => ({
  networks: [...one.networks, ...other.networks],
  ports: one.ports === "any" || other.ports === "any" ? "any" : [...one.ports, ...other.ports]
})

/** Ports of public addresses that are always allowed. */
export const usualPorts: ReadonlyArray<number> = [443, 80]

/** Why a request is refused: the address, or its port. */
export type AddressRefusal = "address" | "port"

const isPublic = (address: NetAddress.IpAddress, own: ReadonlySet<string>): boolean => {
  const within = (network: IpNetwork.IpNetwork) => IpNetwork.contains(network, address)
  if (own.has(String(address))) return false
  if (NetAddress.isIpv4Address(address)) return !specialV4.some(within)
  return (
    (within(nat64) || (within(globalV6) && !specialV6.some(within))) &&
    embeddedV4(address).every((embedded) => isPublic(embedded, own))
  )
}

/**
 * Returns why a request may not be sent to this port of this address, or undefined. Public unicast
 * addresses are allowed at the usual ports. Networks allowed by configuration are allowed at any
 * port. The host's own addresses are not public, since a connection from here passes no firewall. A
 * text that is no IP address is refused. An IPv4-mapped address (`::ffff:10.0.0.1`) is judged as
 * the IPv4 address that it connects to. A NAT64, 6to4 or ISATAP address is refused if its embedded
 * IPv4 address is not public. To allow it, allow its IPv6 network: permission for the IPv4 network
 * does not cover the gateway that leads there.
 *
 * Costs microseconds: call it for each connection, not for each request.
 *
 * @param ip as given by the resolver or the socket, with a zone (`fe80::1%eth0`) or without.
 * @param own addresses of this host, IPv6 in its shortest form.
 */
export const refusalOf = (
  ip: string,
  port: number,
  { networks, ports }: Reach,
  own: ReadonlySet<string>
): AddressRefusal | undefined => {
  const parsed = NetAddress.ipFromString(ip.replace(/%.*$/, ""))
  if (Result.isFailure(parsed)) return "address"
  const address = NetAddress.toCanonical(parsed.success)
  if (networks.some((network) => IpNetwork.contains(network, address))) return undefined
  if (!isPublic(address, own)) return "address"
  const isOpen = ports === "any" || usualPorts.includes(port) || ports.includes(port)
  return isOpen ? undefined : "port"
}

/** The text is not a valid network. */
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

/** Converts an IPv4-mapped network to its IPv4 network, since addresses are judged in that form. */
const toNetwork = ({ address, prefixLength }: IpInterface.IpInterface) =>
  NetAddress.isIpv6Address(address) && NetAddress.isIpv4Mapped(address) && prefixLength >= 96
    ? IpNetwork.make(NetAddress.toCanonical(address), prefixLength - 96)
    : IpNetwork.make(address, prefixLength)

/** Parses a network in CIDR notation. A single address is a network of one. */
export const parseNetwork = (text: string): Result.Result<IpNetwork.IpNetwork, InvalidNetwork> =>
  IpInterface.fromString(text.trim()).pipe(
    Result.flatMap(toNetwork),
    Result.mapError(() => new InvalidNetwork({ text, problem: explain(text.trim()) }))
  )
