import { assert, describe, it } from "@effect/vitest"
import { BodyCapacity } from "../../../src/intake/gateway/body-capacity.ts"
import type { LiveSource } from "../../../src/intake/gateway/live-sources.ts"
import { withVirtualTime } from "../../kit/moved-time.ts"

const of = (tenant: string, id: string) =>
  ({ key: `${tenant}.${id}`, source: { tenant, id } }) as LiveSource

/** Room for 100 bytes; what is cut off gives its capacity back. */
const setUp = () => {
  const capacity = new BodyCapacity(100)
  const cut: Array<string> = []
  const open = (tenant: string, id: string, name: string) => {
    const place = capacity.open(of(tenant, id), () => {
      cut.push(name)
      place.give()
    })
    return place
  }
  return { cut, open, capacity }
}

describe("the capacity for bodies", () => {
  it("is taken from the oldest slow body of the same source", () =>
    withVirtualTime(({ runs }) => {
      const { cut, open } = setUp()
      const slow = open("acme", "one", "slow")
      assert.isTrue(slow.take(20))
      runs(1_001)
      const next = open("acme", "one", "next")
      assert.isTrue(next.take(20))
      assert.deepStrictEqual(cut, ["slow"])
    }))

  it("is not taken from a body that came a moment ago, nor from a whole one", () =>
    withVirtualTime(({ runs }) => {
      const { cut, open } = setUp()
      const whole = open("acme", "one", "whole")
      assert.isTrue(whole.take(20))
      whole.finish()
      runs(1_001)
      const young = open("acme", "one", "young")
      assert.isTrue(young.take(5))
      assert.isFalse(open("acme", "one", "next").take(5))
      assert.deepStrictEqual(cut, [])
    }))

  it("is not taken from others where a source has its own share", () =>
    withVirtualTime(({ runs }) => {
      const { cut, open } = setUp()
      assert.isTrue(open("globex", "one", "globex").take(10))
      assert.isTrue(open("acme", "two", "acme.two").take(10))
      runs(1_001)
      const whole = open("acme", "one", "whole")
      assert.isTrue(whole.take(25))
      whole.finish()
      assert.isFalse(open("acme", "one", "next").take(1))
      assert.deepStrictEqual(cut, [])
    }))

  it("is not taken from a tenant that uses less", () =>
    withVirtualTime(({ runs }) => {
      const { cut, open } = setUp()
      assert.isTrue(open("globex", "one", "globex").take(20))
      runs(1_001)
      for (const id of ["one", "two"]) {
        const whole = open("acme", id, id)
        assert.isTrue(whole.take(20))
        whole.finish()
      }
      assert.isFalse(open("acme", "three", "next").take(1))
      assert.deepStrictEqual(cut, [])
    }))

  it("is taken from a tenant that uses more, where slow bodies leave none", () =>
    withVirtualTime(({ runs }) => {
      const { cut, open } = setUp()
      for (const tenant of ["acme", "globex", "initech"])
        for (const id of ["one", "two"]) open(tenant, id, `${tenant}.${id}`).take(12)
      runs(1_001)
      const next = open("umbrella", "one", "next")
      assert.isTrue(next.take(20))
      assert.deepStrictEqual(cut, ["acme.one"])
    }))
})
