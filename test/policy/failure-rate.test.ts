import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { RateWindow } from "../../src/policy/failure-count.ts"

const minute = 60_000
const half = { rate: { percent: 50, of: 20, over: minute } }

const noted = (outcomes: ReadonlyArray<readonly [ok: boolean, at: number]>) => {
  const window = new RateWindow()
  for (const [ok, at] of outcomes) window.note(ok, at)
  return window
}
/** Every second one fails, one each second. */
const alternating = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => [n % 2 === 0, from + n * 1_000] as const)

describe("a failure rate", () => {
  it("is exceeded when half of at least 20 attempts within a minute failed", () => {
    assert.isFalse(noted(alternating(19)).exceeds(half, 19_000))
    assert.isTrue(noted(alternating(20)).exceeds(half, 20_000))
    const better = noted([...alternating(20), [true, 20_000]])
    assert.isFalse(better.exceeds(half, 20_000))
  })

  it("is not exceeded by fewer attempts, though all of them fail", () => {
    const failing = Array.from({ length: 19 }, (_, n) => [false, n * 1_000] as const)
    assert.isFalse(noted(failing).exceeds(half, 19_000))
    assert.isTrue(noted([...failing, [false, 19_000]]).exceeds(half, 19_000))
  })

  it("does not count what a clock that was put back says is still to come", () => {
    const window = noted(alternating(20, 10 * minute))
    assert.isFalse(window.exceeds(half, minute))
  })

  it("counts no longer what is older than the window", () => {
    const window = noted(alternating(20))
    assert.isTrue(window.exceeds(half, minute - 1))
    assert.isFalse(window.exceeds(half, 2 * minute))
    assert.isFalse(window.exceeds(half, 1_000 * minute))
  })

  it("is never exceeded where there is none", () => {
    assert.isFalse(noted(alternating(100)).exceeds({}, 99_000))
  })

  it("begins anew when it is cleared, and when its length changes", () => {
    const window = noted(alternating(20))
    window.clear()
    assert.isFalse(window.exceeds(half, 20_000))
    const changed = noted(alternating(20))
    const longer = { rate: { ...half.rate, over: 2 * minute } }
    assert.isFalse(changed.exceeds(longer, 20_000))
    for (const [ok, at] of alternating(20, 20_000)) changed.note(ok, at)
    assert.isTrue(changed.exceeds(longer, 40_000))
  })

  it.prop(
    "agrees with a count of all attempts, to a twentieth of the window",
    {
      attempts: Schema.Array(
        Schema.Struct({
          ok: Schema.Boolean,
          after: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))
        })
      ),
      over: Schema.Int.check(Schema.isBetween({ minimum: 20, maximum: 10 * minute }))
    },
    ({ attempts, over }) => {
      const rate = { percent: 30, of: 1, over }
      const window = new RateWindow(over)
      const all: Array<readonly [ok: boolean, at: number]> = []
      let at = 1_000_000
      for (const { after, ok } of attempts) {
        at += after
        window.note(ok, at)
        all.push([ok, at])
        const possible = Array.from({ length: all.length }, (_, from) => all.slice(from)).filter(
          ([first]) => first !== undefined && first[1] > at - over
        )
        const certain = all.filter(([, then]) => then > at - over * 0.95)
        const verdicts = possible
          .filter((some) => some.length >= certain.length)
          .map((some) => some.filter(([ok]) => !ok).length * 100 >= some.length * 30)
        const exceeds = window.exceeds({ rate }, at)
        assert.include(verdicts, exceeds)
      }
    }
  )
})
