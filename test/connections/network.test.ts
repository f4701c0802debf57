import { assert, describe, it } from "@effect/vitest"
import { networkOf } from "../../src/connections/network.ts"

describe("what clients without a token are counted by", () => {
  it.each([
    ["an IPv4 address", "192.0.2.1", "192.0.2.1"],
    ["an IPv4 address in an IPv6 socket", "::ffff:192.0.2.1", "192.0.2.1"],
    ["the network of an IPv6 address", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["the same one, however it is written", "2001:db8:1:2::1", "2001:db8:1:2::/64"],
    ["the network of a short one", "2001:db8::1", "2001:db8::/64"],
    ["its neighbour in that", "2001:db8::2", "2001:db8::/64"],
    ["the network of one with a zone", "fe80::1%eth0", "fe80::/64"],
    ["what is no address", "", ""]
  ] as const)("is %s", (_, address, expected) => {
    assert.strictEqual(networkOf(address), expected)
  })
})
