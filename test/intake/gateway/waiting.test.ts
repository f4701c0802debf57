import { assert, describe, it } from "@effect/vitest"
import type { LiveSource } from "../../../src/intake/gateway/live-sources.ts"
import { WaitingRequests } from "../../../src/intake/gateway/waiting.ts"
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
      runs(24)
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
      runs(25)
      assert.isFalse(waiting.has("acme.one"))
      assert.strictEqual(fill(of("acme", "three")), 512)
    }))
})
