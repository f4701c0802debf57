import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { allowedHosts, clientAddress, hostName, isLoopback } from "../../src/api/addresses.ts"
import { parseNetwork } from "../../src/policy/address.ts"

const proxies = ["10.0.0.0/8", "2001:db8::/32"].map((text) => Result.getOrThrow(parseNetwork(text)))

describe("the address that a request comes from", () => {
  it.each([
    ["the connection's", "192.0.2.1", undefined, "192.0.2.1"],
    ["the connection's, whatever a stranger claims", "192.0.2.1", "198.51.100.7", "192.0.2.1"],
    ["what a trusted proxy says", "10.0.0.1", "198.51.100.7", "198.51.100.7"],
    [
      "what the last trusted proxy says",
      "10.0.0.1",
      "1.1.1.1, 198.51.100.7, 10.2.3.4",
      "198.51.100.7"
    ],
    ["the proxy's, if it says nothing", "10.0.0.1", undefined, "10.0.0.1"],
    ["the proxy's, if it says what is no address", "10.0.0.1", "1.1.1.1, unknown", "10.0.0.1"],
    ["an IPv4 one in an IPv6 socket", "::ffff:10.0.0.1", "198.51.100.7:4711", "198.51.100.7"],
    ["an IPv6 one with a port", "2001:db8::1", "[2001:0DB9::7]:4711", "2001:db9::7"],
    ["an IPv6 one with a zone", "fe80::1%eth0", undefined, "fe80::1"],
    ["a proxy's own request", "10.0.0.1", "10.0.0.2", "10.0.0.2"]
  ] as const)("is %s", (_, peer, forwardedFor, expected) => {
    assert.strictEqual(clientAddress(peer, forwardedFor, proxies), expected)
  })

  it("is believed from nobody by default, and found within bounds", () => {
    assert.strictEqual(clientAddress("10.0.0.1", "198.51.100.7", []), "10.0.0.1")
    assert.isUndefined(clientAddress("", undefined, proxies))
    const long = `198.51.100.7, ${Array.from({ length: 1_000 }, () => "10.0.0.1").join(", ")}`
    assert.strictEqual(clientAddress("10.0.0.1", long, proxies), "10.0.0.1")
  })
})

describe("hosts", () => {
  const names: ReadonlyArray<readonly [header: string, name: string]> = [
    ["localhost:4280", "localhost"],
    ["Petrel.Example", "petrel.example"],
    ["[::1]:4280", "[::1]"],
    ["[fe80::1]", "[fe80::1]"],
    ["127.0.0.1:", "127.0.0.1"],
    ["", ""]
  ]
  for (const [header, name] of names)
    it(`reads ${header} as ${name}`, () => {
      assert.strictEqual(hostName(header), name)
    })

  it("are those of loopback, of the address and of the public URL", () => {
    const hosts = allowedHosts("fd00::2", "https://petrel.example:8443")
    for (const host of ["localhost", "127.0.0.1", "[::1]", "[fd00::2]", "petrel.example"])
      assert.isTrue(hosts.has(host), host)
    for (const host of ["evil.example", "", "fd00::2"]) assert.isFalse(hosts.has(host), host)
  })

  it("are of this machine alone, or not", () => {
    for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
      assert.isTrue(isLoopback(host), host)
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example"])
      assert.isFalse(isLoopback(host), host)
  })
})
