import { assert, describe, it } from "@effect/vitest"
import { DirectoryTable } from "../../src/endpoints/directory-table.ts"
import { live } from "../delivery/made-deliveries.ts"

describe("endpoints that were removed", () => {
  it("are remembered by their revision, the latest of them, however many there were", () => {
    const table = new DirectoryTable()
    const last = 30_000
    for (let revision = 1; revision <= last; revision++)
      table.remove(`acme.hook-${revision}`, revision)
    assert.strictEqual(table.revisionOf(`acme.hook-${last}`), last)
    assert.strictEqual(table.revisionOf(`acme.hook-${last - 5_000}`), last - 5_000)
    assert.strictEqual(table.revisionOf("acme.hook-1"), 0)
    assert.deepStrictEqual(table.shown("acme.hook-1"), { revision: 0, text: undefined })
  })

  it("leave nothing behind where their configuration was never readable", () => {
    const table = new DirectoryTable()
    table.cannotRead("acme.hook")
    assert.isTrue(table.isPresent("acme.hook"))
    table.remove("acme.hook", 1)
    assert.isFalse(table.isPresent("acme.hook"))
    assert.deepStrictEqual(table.unreadable("acme"), [])
  })
})

describe("headers that endpoints forward", () => {
  const put = (table: DirectoryTable, id: string, forwardHeaders: ReadonlyArray<string>) =>
    table.put(
      `acme.${id}`,
      { ...live.config, id, forwardHeaders },
      JSON.stringify({ url: "https://hooks.example/" }),
      1
    )

  it("are known without a look at each endpoint, of which there may be thousands", () => {
    const table = new DirectoryTable()
    let looks = 0
    const counted = new Proxy(["x-id"], {
      get: (...of) => {
        looks++
        return Reflect.get(...of)
      }
    })
    for (let n = 0; n < 10; n++) put(table, `hook-${n}`, counted)
    looks = 0
    assert.deepStrictEqual(table.forwardable("acme"), ["x-id"])
    assert.strictEqual(looks, 0)
  })

  it("are those that an endpoint still names", () => {
    const table = new DirectoryTable()
    put(table, "a", ["x-id", "x-a"])
    put(table, "b", ["x-id"])
    assert.deepStrictEqual(table.forwardable("acme"), ["x-a", "x-id"])
    put(table, "a", ["x-c"])
    assert.deepStrictEqual(table.forwardable("acme"), ["x-c", "x-id"])
    table.remove("acme.b", 2)
    assert.deepStrictEqual(table.forwardable("acme"), ["x-c"])
    table.remove("acme.a", 3)
    assert.isUndefined(table.forwardable("acme"))
  })
})
