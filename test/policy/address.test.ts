import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import type { IpNetwork } from "effect/net"
import { InvalidNetwork, parseNetwork, type Reach, refusalOf } from "../../src/policy/address.ts"

const network = (text: string): IpNetwork.IpNetwork => Result.getOrThrow(parseNetwork(text))

const nothingOwn: ReadonlySet<string> = new Set()

const isAllowedAddress = (ip: string, networks: Reach["networks"]): boolean =>
  refusalOf(ip, 443, { networks, ports: [] }, nothingOwn) === undefined

const refused: Record<string, ReadonlyArray<string>> = {
  "this network": ["0.0.0.0", "0.1.2.3", "0.255.255.255"],
  private: ["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1"],
  "shared by a carrier": ["100.64.0.0", "100.100.100.200", "100.127.255.255"],
  loopback: ["127.0.0.1", "127.0.0.53", "127.255.255.255", "::1"],
  "link-local": ["169.254.0.1", "169.254.255.255", "fe80::1", "febf::1", "fe80::1%eth0"],
  metadata: ["169.254.169.254", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"],
  documentation: ["192.0.2.1", "198.51.100.1", "203.0.113.255", "2001:db8::1", "3fff::1"],
  benchmarking: ["198.18.0.0", "198.19.255.255", "2001:2::1"],
  "protocol assignments": ["192.0.0.1", "2001::1", "2001:20::1", "2001:1ff:ffff::"],
  "6to4 relays": ["192.88.99.1"],
  multicast: ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
  reserved: ["240.0.0.1", "255.255.255.254"],
  broadcast: ["255.255.255.255"],
  unspecified: ["::"],
  "unique-local": ["fc00::1", "fdff:ffff::1"],
  "site-local, given up": ["fec0::1"],
  discard: ["100::1"],
  "outside of global unicast": ["::2", "1::1", "4000::1", "5f00::1", "8000::1", "f000::1"],
  "IPv4-mapped": [
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::FFFF:10.1.2.3",
    "0:0:0:0:0:ffff:169.254.169.254",
    "::ffff:0.0.0.0"
  ],
  "IPv4-compatible and -translated": ["::127.0.0.1", "::8.8.8.8", "::ffff:0:8.8.8.8"],
  "NAT64 of what is not public": [
    "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::8.8.8.8"
  ],
  "6to4 of what is not public": ["2002:7f00:1::1", "2002:a00:1::", "2002:c0a8:101::1"],
  "ISATAP of what is not public, under any prefix": [
    "2600:1::5efe:10.0.0.1",
    "2600:1::5efe:7f00:1",
    "2600:1::200:5efe:169.254.169.254",
    "fe80::5efe:8.8.8.8"
  ],
  "ISATAP of what is public, with a 6to4 prefix of what is not": ["2002:a00:1::5efe:8.8.8.8"],
  Teredo: ["2001:0:808:808::", "2001:0:a00:1::f5ff:fffe"],
  "no address": [
    "",
    "localhost",
    "example.com",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "8.8.8.8:80",
    "[2600::1]",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "2130706433",
    " 8.8.8.8",
    "8.8.8.8/32",
    ":::1",
    "%eth0"
  ]
}

const allowed: Record<string, ReadonlyArray<string>> = {
  "public IPv4": ["1.1.1.1", "8.8.8.8", "93.184.216.34", "223.255.255.255"],
  "just outside of what is refused": [
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0"
  ],
  "global unicast IPv6": [
    "2001:200::1",
    "2001:4860:4860::8888",
    "2001:db7::1",
    "2001:db9::1",
    "2606:4700:4700::1111",
    "2a00:1450::1",
    "3ffe:ffff::1"
  ],
  "public IPv4 in IPv6": [
    "2600:1::5efe:8.8.8.8",
    "2600:1::200:5efe:8.8.8.8",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1"
  ]
}

describe("without allowed networks", () => {
  for (const [kind, addresses] of Object.entries(refused))
    it(`refuses ${kind}`, () => {
      for (const ip of addresses) assert.isFalse(isAllowedAddress(ip, []), ip)
    })

  for (const [kind, addresses] of Object.entries(allowed))
    it(`allows ${kind}`, () => {
      for (const ip of addresses) assert.isTrue(isAllowedAddress(ip, []), ip)
    })

  const Octet = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
  it.prop(
    "judges an IPv4 address and its IPv4-mapped, NAT64 and 6to4 forms alike",
    [Octet, Octet, Octet, Octet],
    ([a, b, c, d]) => {
      const plain = `${a}.${b}.${c}.${d}`
      const high = (a * 256 + b).toString(16)
      const low = (c * 256 + d).toString(16)
      const expected = isAllowedAddress(plain, [])
      for (const form of [`::ffff:${plain}`, `64:ff9b::${plain}`, `2002:${high}:${low}::1`])
        assert.strictEqual(isAllowedAddress(form, []), expected, form)
    }
  )
})

describe("with allowed networks", () => {
  it("allows what is in one of them, and refuses the rest as before", () => {
    const networks = [network("10.1.0.0/16"), network("::1"), network("fd00::/8")]
    for (const ip of ["10.1.0.1", "10.1.255.255", "::1", "fd12::1", "::ffff:10.1.2.3", "8.8.8.8"])
      assert.isTrue(isAllowedAddress(ip, networks), ip)
    for (const ip of ["10.2.0.1", "127.0.0.1", "::2", "fc00::1", "::ffff:10.2.0.1"])
      assert.isFalse(isAllowedAddress(ip, networks), ip)
  })

  it("does not mind the zone of a link-local address", () => {
    assert.isTrue(isAllowedAddress("fe80::1%eth0", [network("fe80::/10")]))
  })

  it("does not let all of IPv6 stand for IPv4 in disguise", () => {
    assert.isTrue(isAllowedAddress("fe80::1", [network("::/0")]))
    assert.isFalse(isAllowedAddress("::ffff:127.0.0.1", [network("::/0")]))
  })

  it("allows all of IPv4 where asked to", () => {
    assert.isTrue(isAllowedAddress("169.254.169.254", [network("0.0.0.0/0")]))
    assert.isFalse(isAllowedAddress("::1", [network("0.0.0.0/0")]))
  })

  it("does not take what is no address for one", () => {
    assert.isFalse(isAllowedAddress("localhost", [network("0.0.0.0/0"), network("::/0")]))
  })
})

describe("this host's own addresses", () => {
  const own = new Set(["8.8.4.4", "2600:1::5"])
  const refusal = (ip: string, networks: Reach["networks"] = []) =>
    refusalOf(ip, 443, { networks, ports: "any" }, own)

  it("are refused though they are public, in whatever form", () => {
    for (const ip of [
      ...own,
      "::ffff:8.8.4.4",
      "64:ff9b::8.8.4.4",
      "2002:808:404::1",
      "2600:1:0::5"
    ])
      assert.strictEqual(refusal(ip), "address", ip)
    for (const ip of ["8.8.4.5", "2600:1::6"]) assert.isUndefined(refusal(ip), ip)
  })

  it("are allowed where a network says so", () => {
    assert.isUndefined(refusal("8.8.4.4", [network("8.8.4.0/24")]))
  })
})

describe("ports", () => {
  const refusal = (ip: string, port: number, reach: Partial<Reach> = {}) =>
    refusalOf(ip, port, { networks: [], ports: [], ...reach }, nothingOwn)

  it("of public addresses are 443 and 80, and those that were allowed", () => {
    for (const port of [443, 80]) assert.isUndefined(refusal("8.8.8.8", port))
    for (const port of [22, 8443, 0]) assert.strictEqual(refusal("8.8.8.8", port), "port")
    assert.isUndefined(refusal("8.8.8.8", 8443, { ports: [8443] }))
    assert.strictEqual(refusal("8.8.8.8", 22, { ports: [8443] }), "port")
    assert.isUndefined(refusal("8.8.8.8", 22, { ports: "any" }))
  })

  it("of an allowed network are all allowed", () => {
    assert.isUndefined(refusal("10.0.0.1", 22, { networks: [network("10.0.0.0/8")] }))
  })

  it("do not open a private address, nor tell that its port would not do", () => {
    for (const port of [443, 22])
      assert.strictEqual(refusal("10.0.0.1", port, { ports: "any" }), "address")
  })
})

describe("a network to allow", () => {
  it("is read in CIDR notation", () => {
    assert.strictEqual(String(network("10.0.0.0/8")), "10.0.0.0/8")
    assert.strictEqual(String(network(" fd00::/8 ")), "fd00::/8")
  })

  it("may be a single address", () => {
    assert.strictEqual(String(network("192.168.1.7")), "192.168.1.7/32")
    assert.strictEqual(String(network("::1")), "::1/128")
  })

  it("is an IPv4 network where it is written as a mapped one", () => {
    assert.strictEqual(String(network("::ffff:10.0.0.0/104")), "10.0.0.0/8")
    assert.isTrue(isAllowedAddress("10.2.3.4", [network("::ffff:10.0.0.0/104")]))
  })

  it("with bits beyond its prefix is refused, and the one that was meant is named", () => {
    for (const [text, meant] of [
      ["10.1.0.0/8", "10.0.0.0/8"],
      ["fd12::1/8", "fd00::/8"]
    ] as const)
      Result.match(parseNetwork(text), {
        onSuccess: () => assert.fail(text),
        onFailure: (error) => {
          assert.instanceOf(error, InvalidNetwork)
          assert.strictEqual(
            error.message,
            `"${text}" is not a network: the address has bits set beyond the prefix; did you mean ${meant}?`
          )
        }
      })
  })

  it("that is none is refused, with an example", () => {
    for (const text of [
      "",
      "x",
      "10.0.0.0/33",
      "10.0.0.0/",
      "/8",
      "10/8",
      "10.0.0.0/8/8",
      "::/129"
    ])
      Result.match(parseNetwork(text), {
        onSuccess: () => assert.fail(text),
        onFailure: (error) =>
          assert.strictEqual(
            error.message,
            `"${text}" is not a network: expected one such as 10.0.0.0/8 or fd00::/8, or a single address`
          )
      })
  })
})
