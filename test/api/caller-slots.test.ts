import { assert, describe, it } from "@effect/vitest"
import { Slots } from "../../src/api/tokens/caller-limits.ts"
import type { Caller } from "../../src/operations/caller.ts"

const callerOf = (tenant: string, id: string) =>
  ({ tenant, token: { id } }) as Pick<Caller["Service"], "tenant" | "token">

/** Takes slots with one token after the other until one of them has none left for its tenant. */
const takeAll = (slots: Slots["Service"]["requests"], tenant: string): ReadonlyArray<number> => {
  const taken: Array<number> = []
  for (;;) {
    const caller = callerOf(tenant, `${tenant} ${taken.length}`)
    let count = 0
    let refused = slots.take(caller)
    for (; refused === undefined; refused = slots.take(caller)) count++
    taken.push(count)
    if (refused === "tenant") return taken
  }
}

describe("what goes on for callers at the same time", () => {
  it("is 512 requests, 256 of one tenant and 128 of one token", () => {
    const { requests } = Slots.make()
    assert.deepStrictEqual(takeAll(requests, "acme"), [128, 128, 0])
    assert.deepStrictEqual(takeAll(requests, "globex"), [128, 0])
    // One for the tenant that asks, and one that is left for the next.
    for (const id of ["acme 0", "acme 1"]) requests.give(callerOf("acme", id))
    assert.isUndefined(requests.take(callerOf("globex", "one more")))
  })

  it("is 256 streams, 128 of one tenant and 16 of one token", () => {
    const { streams } = Slots.make()
    assert.deepStrictEqual(takeAll(streams, "acme"), [...Array.from({ length: 8 }, () => 16), 0])
    assert.deepStrictEqual(takeAll(streams, "globex"), [16, 16, 16, 16, 0])
  })
})
