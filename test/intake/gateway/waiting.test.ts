import { assert, describe, it } from "@effect/vitest"
import type { LiveSource } from "../../../src/intake/gateway/live-sources.ts"
import { WaitingRequests } from "../../../src/intake/gateway/waiting.ts"
import { systemTimers, useTimers } from "../../../src/time/timers.ts"
import { withVirtualTime } from "../../kit/moved-time.ts"

const of = (tenant: string, id: string) =>
  ({ key: `${tenant}.${id}`, source: { tenant, id } }) as LiveSource

describe("requests that wait for a place", () => {
  it("are resumed once each, those of a source in their order and sources in turn", () =>
    withVirtualTime(({ runs }) => {
      const waiting = new WaitingRequests()
      const resumed: Array<string> = []
      const add = (live: LiveSource, name: string) => {
        assert.isTrue(waiting.add(live, () => resumed.push(name)))
      }
      const [one, two] = [of("acme", "one"), of("acme", "two")]
      for (const name of ["a1", "a2", "a3"]) add(one, name)
      for (const name of ["b1", "b2"]) add(two, name)
      for (let n = 0; n < 3; n++) waiting.wake(() => true)
      assert.deepStrictEqual(resumed, ["a1", "b1", "a2"])
      waiting.wake(({ key }) => key === one.key)
      waiting.wake(({ key }) => key === one.key)
      assert.deepStrictEqual(resumed, ["a1", "b1", "a2", "a3"])
      assert.isFalse(waiting.has(one.key))
      assert.isTrue(waiting.has(two.key))
      runs(31)
      assert.lengthOf(resumed, 4)
      runs(1)
      assert.deepStrictEqual(resumed, ["a1", "b1", "a2", "a3", "b2"])
      runs(100)
      waiting.wake(() => true)
      assert.lengthOf(resumed, 5)
    }))

  it("are bounded by source and by tenant, and leave room for others", () =>
    withVirtualTime(({ runs }) => {
      const waiting = new WaitingRequests()
      const add = (live: LiveSource) => waiting.add(live, () => undefined)
      const fill = (live: LiveSource): number => {
        let count = 0
        while (add(live)) count++
        return count
      }
      assert.strictEqual(fill(of("acme", "one")), 512)
      assert.strictEqual(fill(of("acme", "two")), 512)
      assert.strictEqual(fill(of("acme", "three")), 0)
      assert.strictEqual(fill(of("globex", "one")), 512)
      runs(32)
      assert.isFalse(waiting.has("acme.one"))
      assert.strictEqual(fill(of("acme", "three")), 512)
    }))

  it("count what they may have lain in their sockets, and end without a timer", () => {
    let now = 0
    const endsOfTurns: Array<() => void> = []
    const timer = { unref: () => undefined }
    const putBack = useTimers({
      ...systemTimers,
      monotonicMs: () => now,
      after: () => timer,
      cancel: () => undefined,
      immediate: (run) => endsOfTurns.push(run)
    })
    try {
      const waiting = new WaitingRequests()
      const resumed: Array<string> = []
      const come = (name: string) => {
        waiting.look()
        waiting.add(of("acme", "one"), () => resumed.push(`${name} at ${now}`))
      }
      const takes = (ms: number) => {
        now += ms
        waiting.look()
      }
      const nextTurn = () => {
        for (const end of endsOfTurns.splice(0)) end()
      }
      // A turn of 12 ms.
      come("first")
      takes(12)
      come("late in the first")
      nextTurn()
      // It may have come when the turn before began.
      come("in the second")
      takes(4)
      come("late in the second")
      nextTurn()
      takes(15)
      assert.deepStrictEqual(resumed, [])
      takes(1)
      assert.deepStrictEqual(resumed, [
        "first at 32",
        "late in the first at 32",
        "in the second at 32",
        "late in the second at 32"
      ])
      nextTurn()
      // Nobody may have come while nothing was handled.
      now += 1_000
      nextTurn()
      come("after a pause")
      takes(30)
      assert.lengthOf(resumed, 4)
      takes(1)
      assert.lengthOf(resumed, 5)
      // In turns that take longer than all, it waits 10 ms.
      nextTurn()
      takes(100)
      come("in a long turn")
      takes(9)
      assert.lengthOf(resumed, 5)
      takes(1)
      assert.lengthOf(resumed, 6)
    } finally {
      putBack()
    }
  })
})
