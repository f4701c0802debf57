import { assert, describe, it } from "@effect/vitest"
import { DirectoryTable } from "../../src/endpoints/directory-table.ts"

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
