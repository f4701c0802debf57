import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { stepOf } from "../../src/policy/durations.ts"
import { addCounts, noCounts, Tally, tallySince } from "../../src/policy/tally.ts"

const minute = 60_000
const start = 1_000_000 * 60 * minute
const at = (minutes: number) => start + minutes * minute

interface Attempt {
  readonly delivered: boolean
  readonly ms: number
  readonly at: number
}
const noted = (attempts: ReadonlyArray<Attempt>) => {
  const tally = new Tally()
  for (const attempt of attempts) tally.note(attempt.delivered, attempt.ms, attempt.at)
  return tally
}
const one = (minutes: number, ms = 20, delivered = true): Attempt => ({
  delivered,
  ms,
  at: at(minutes)
})

describe("a tally", () => {
  it("counts attempts, and which of them delivered", () => {
    const { attempts, delivered } = noted([one(0), one(1), one(2, 20, false)]).read(at(3))
    assert.deepStrictEqual([attempts, delivered], [3, 2])
    assert.deepStrictEqual(new Tally().read(at(0)), noCounts)
  })

  it("forgets what was more than an hour ago, ten minutes at a time", () => {
    const tally = noted([one(1), one(15), one(15), one(35, 20, false)])
    assert.strictEqual(tally.read(at(59)).attempts, 4)
    assert.strictEqual(tally.read(at(60)).attempts, 3)
    assert.strictEqual(tally.read(at(70)).attempts, 1)
    assert.isFalse(tally.isOver(at(89)))
    assert.strictEqual(tally.read(at(90)).attempts, 0)
    assert.isTrue(tally.isOver(at(90)))
  })

  it("says since when it tells", () => {
    assert.strictEqual(tallySince(at(60)), at(10))
    assert.strictEqual(tallySince(at(69)), at(10))
  })

  it("takes up again after a long silence without what was before it", () => {
    const tally = noted([one(0), one(5), one(600)])
    assert.strictEqual(tally.read(at(601)).attempts, 1)
  })

  it("goes on counting when the clock is put back", () => {
    const little = noted([one(30), one(15)])
    assert.strictEqual(little.read(at(30)).attempts, 2)
    const much = noted([one(600), one(0)])
    assert.strictEqual(much.read(at(1)).attempts, 1)
  })

  it.prop(
    "agrees with a count of all attempts of its slices, whatever their durations",
    [
      Schema.Array(
        Schema.Struct({
          after: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 25 })),
          ms: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2_000_000 })),
          delivered: Schema.Boolean
        })
      ),
      // A few are kept in another way than many.
      Schema.Literals([1, 9])
    ],
    ([steps, times]) => {
      let now = 0
      const attempts = steps.flatMap(({ after, delivered, ms }) => {
        now += after
        return Array.from({ length: times }, (_, n) => one(now, ms * (n + 1), delivered))
      })
      const within = attempts.filter((attempt) => attempt.at >= tallySince(at(now)))
      const told = noted(attempts).read(at(now))
      assert.strictEqual(told.attempts, within.length)
      assert.strictEqual(told.delivered, within.filter(({ delivered }) => delivered).length)
      for (const [step, count] of told.durations.entries())
        assert.strictEqual(count, within.filter(({ ms }) => stepOf(ms) === step).length)
    }
  )

  it("adds up with others", () => {
    const quick = noted([one(0, 2), one(0, 2)]).read(at(0))
    const slow = noted([one(0, 5_000, false)]).read(at(0))
    const all = addCounts([quick, slow, noCounts])
    assert.deepStrictEqual([all.attempts, all.delivered], [3, 2])
    assert.strictEqual(all.durations[stepOf(2)], 2)
    assert.strictEqual(all.durations[stepOf(5_000)], 1)
    assert.deepStrictEqual(addCounts([]), noCounts)
  })
})
