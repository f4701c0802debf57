import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { AlertAttempt } from "../../src/policy/alert-window.ts"
import { AlertWindow, noAlertCounts } from "../../src/policy/alert-window.ts"

const over = 600_000
const start = 1_000_000 * over
const attempt = (changes: Partial<AlertAttempt> = {}): AlertAttempt => ({
  verdict: "delivered",
  attempt: 1,
  at: start,
  ...changes
})

describe("the window of an alert", () => {
  it("counts what deliveries came to", () => {
    const window = new AlertWindow(over)
    window.attempt(attempt({ verdict: "retry" }))
    window.attempt(attempt({ verdict: "retry", attempt: 2 }))
    window.attempt(attempt({ attempt: 3, firstAt: start, took: 0.5 }))
    window.attempt(attempt({ took: 0.7 }))
    window.attempt(attempt({ verdict: "fail" }))
    window.dead(start, start)
    window.attempt(attempt({ verdict: "retry" }))
    const { times, ...counts } = window.read(start)
    assert.deepStrictEqual(counts, {
      tried: 4,
      retried: 2,
      refused: 1,
      delivered: 2,
      pending: 1,
      attempts: 4,
      dead: 1
    })
    assert.deepStrictEqual(times, [2])
  })

  it("forgets what is older than itself, a tenth of its length at most too early", () => {
    const window = new AlertWindow(over)
    window.attempt(attempt())
    assert.strictEqual(window.read(start + 0.9 * over - 1).delivered, 1)
    assert.strictEqual(window.read(start + over).delivered, 0)
    assert.isFalse(window.isOver(start + 0.9 * over - 1))
    assert.isTrue(window.isOver(start + over))
    window.attempt(attempt({ at: start + over }))
    assert.strictEqual(window.read(start + over).delivered, 1)
  })

  const offset = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 * over }))
  it.prop(
    "counts each of the last nine tenths, and none from before",
    [Schema.Array(offset)],
    ([offsets]) => {
      const window = new AlertWindow(over)
      const times = offsets.toSorted((a, b) => a - b)
      for (const time of times) window.attempt(attempt({ at: start + time }))
      const now = times.at(-1) ?? 0
      const { delivered } = window.read(start + now)
      assert.isAtLeast(delivered, times.filter((time) => time > now - 0.9 * over).length)
      assert.isAtMost(delivered, times.filter((time) => time > now - over).length)
      if (times.length === 0) assert.deepStrictEqual(window.read(start), noAlertCounts)
    }
  )

  const slice = over / 10
  const upTo = (most: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: most }))
  /** One delivery, in slices: its first attempt, the pauses before the further ones; and its end, if any. */
  const Story = Schema.Struct({
    first: upTo(12),
    pauses: Schema.Array(upTo(12)).check(Schema.isMaxLength(2)),
    end: Schema.Literals(["delivered", "dead", "none"])
  })

  const momentsOf = ({ end, first, pauses }: typeof Story.Type) => {
    const began = start + first * slice
    let at = began
    const times = [at, ...pauses.map((pause) => (at += pause * slice))]
    return times.map((time, place) => {
      const isLast = place === times.length - 1
      const verdict = isLast && end === "delivered" ? "delivered" : "retry"
      const firstAt = place === 0 ? undefined : began
      return {
        at: time,
        attempt: place + 1,
        verdict,
        firstAt,
        dies: isLast && end === "dead"
      } as const
    })
  }

  it.prop(
    "counts each delivery once: by its end when it ends, and before that as one that failed at first",
    [Schema.Array(Story).check(Schema.isMinLength(20), Schema.isMaxLength(40))],
    ([stories]) => {
      const window = new AlertWindow(over)
      const all = stories.flatMap(momentsOf).toSorted((a, b) => a.at - b.at)
      for (const { dies, ...made } of all) {
        window.attempt(made)
        if (dies) window.dead(made.at, made.firstAt ?? made.at)
      }
      const now = Math.max(start, ...all.map(({ at }) => at))
      const sliceOf = (at: number) => Math.floor(at / slice)
      const isRecent = (at: number) => sliceOf(at) > sliceOf(now) - 10
      const told = stories.map((story) => {
        const { at, firstAt = at } = momentsOf(story).at(-1) ?? { at: 0 }
        if (story.end !== "none") return isRecent(at) ? story.end : undefined
        return isRecent(firstAt) ? "pending" : undefined
      })
      const { dead, delivered, pending } = window.read(now)
      const count = (what: string) => told.filter((found) => found === what).length
      assert.deepStrictEqual(
        { dead, delivered, pending },
        { dead: count("dead"), delivered: count("delivered"), pending: count("pending") }
      )
    }
  )

  it("takes nothing from those that fail now for those that a former owner saw fail", () => {
    const window = new AlertWindow(over)
    for (let n = 0; n < 5; n++)
      window.attempt(attempt({ attempt: 2, firstAt: start - slice, at: start }))
    window.attempt(attempt({ verdict: "retry" }))
    window.dead(start, undefined)
    assert.deepInclude(window.read(start), { delivered: 5, pending: 1, dead: 1 })
  })
})
