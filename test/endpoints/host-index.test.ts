import { assert, describe, it } from "@effect/vitest"
import { endpointHash } from "../../src/domain/names.ts"
import { HostIndex, hostOf } from "../../src/endpoints/host-index.ts"

const hosted = (key: string, url: string, changes: object = {}) => ({
  key,
  text: JSON.stringify({ url, ...changes })
})

const a = hosted("acme.a", "https://Hooks.Example:8443/a")
const b = hosted("acme.b", "http://hooks.example./b")
const other = hosted("acme.other", "https://other.example/")
const foreign = hosted("umbrella.a", "https://hooks.example/u")
const off = hosted("acme.off", "https://hooks.example/", { disabled: {} })

const hashes = (...keys: ReadonlyArray<string>) => keys.map(endpointHash)

describe("the host of a URL", () => {
  it.each([
    ["https://Hooks.Example:8443/a?b=c", "hooks.example"],
    ["http://hooks.example./", "hooks.example"],
    ["http://127.0.0.1:80/", "127.0.0.1"],
    ["http://[::1]:80/", "[::1]"]
  ])("of %s is %s", (url, host) => {
    assert.strictEqual(hostOf(url), host)
  })
})

describe("the index of hosts", () => {
  it("holds nothing without a cap", () => {
    const index = new HostIndex()
    for (const one of [a, b, other]) index.add(one)
    assert.deepStrictEqual(index.of("acme", "hooks.example").hashes, [])
  })

  it("finds a tenant's endpoints of a host that take deliveries, whenever they were added", () => {
    const index = new HostIndex()
    index.cap("acme", [a, other, off])
    for (const one of [b, foreign]) index.add(one)
    assert.deepStrictEqual(index.of("acme", "hooks.example").hashes, hashes("acme.a", "acme.b"))
    assert.deepStrictEqual(index.of("acme", "other.example").hashes, hashes("acme.other"))
    assert.deepStrictEqual(index.of("umbrella", "hooks.example").hashes, [])
    assert.deepStrictEqual(index.of(undefined, "hooks.example").hashes, [])
  })

  it("finds those of all tenants for the system, beside a tenant's", () => {
    const index = new HostIndex()
    index.cap("acme", [a])
    index.cap(undefined, [a, foreign])
    assert.deepStrictEqual(
      index.of(undefined, "hooks.example").hashes,
      hashes("acme.a", "umbrella.a")
    )
    // By itself, without a look at each endpoint, of which there may be 100,000.
    index.uncap("acme")
    assert.deepStrictEqual(index.of("acme", "hooks.example").hashes, [])
    assert.lengthOf(index.of(undefined, "hooks.example").hashes, 2)
    index.cap("acme", [b])
    assert.deepStrictEqual(index.of("acme", "hooks.example").hashes, hashes("acme.b"))
  })

  it("shows by another version that a host's endpoints have changed", () => {
    const index = new HostIndex()
    index.cap("acme", [a])
    const before = index.of("acme", "hooks.example").version
    index.add(b)
    const grown = index.of("acme", "hooks.example").version
    assert.notStrictEqual(grown, before)
    index.remove(a)
    const { hashes: left, version } = index.of("acme", "hooks.example")
    assert.deepStrictEqual(left, hashes("acme.b"))
    assert.notStrictEqual(version, grown)
    index.remove(b)
    assert.strictEqual(index.of("acme", "hooks.example").version, 0)
  })
})
