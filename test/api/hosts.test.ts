import { assert, describe, it } from "@effect/vitest"
import { allowedHosts, hostName, isLoopback } from "../../src/api/addresses.ts"

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
