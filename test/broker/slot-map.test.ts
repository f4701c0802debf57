import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { SlotMap } from "../../src/broker/slot-map.ts"

const sorted = <T>(slots: SlotMap<T>) => [...slots.entries()].sort(([a], [b]) => a - b)

describe("what is awaited by a number", () => {
  it("is given back once", () => {
    const slots = new SlotMap<string>()
    const [a, b] = [slots.add("a"), slots.add("b")]
    assert.strictEqual(slots.take(b), "b")
    assert.isUndefined(slots.take(b))
    assert.strictEqual(slots.take(a), "a")
    assert.isUndefined(slots.take(a))
  })

  it("is not what has its place since, when the number of the one before comes late", () => {
    const slots = new SlotMap<string>()
    const early = slots.add("early")
    slots.take(early)
    for (let use = 0; use < 100; use++) {
      const late = slots.add("late")
      assert.notStrictEqual(late, early)
      assert.isUndefined(slots.take(early))
      assert.strictEqual(slots.take(late), "late")
    }
  })

  it("is not found by what is no number of its own", () => {
    const slots = new SlotMap<string>()
    const token = slots.add("a")
    slots.take(slots.add("b"))
    // The last is a number of an empty place.
    for (const other of [0, 1, token + 1, token + 0.5, Number.NaN, -1])
      assert.isUndefined(slots.take(other), `${other}`)
    assert.strictEqual(slots.take(token), "a")
  })

  it("is shown with its number, and what was given back is not", () => {
    const slots = new SlotMap<string>()
    const [a, b, c] = [slots.add("a"), slots.add("b"), slots.add("c")]
    slots.take(b)
    assert.deepStrictEqual(sorted(slots), [
      [a, "a"],
      [c, "c"]
    ])
  })

  it("may be given back while all are shown", () => {
    const slots = new SlotMap<string>()
    for (const value of ["a", "b", "c"]) slots.add(value)
    const taken: Array<string | undefined> = []
    for (const [token] of slots.entries()) taken.push(slots.take(token))
    assert.deepStrictEqual(taken.sort(), ["a", "b", "c"])
    assert.deepStrictEqual(sorted(slots), [])
  })

  // Each step keeps one more, or takes one by a number that was given at some time.
  const Step = Schema.Union([
    Schema.Literal("add"),
    Schema.Struct({ take: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000 })) })
  ])

  it.prop(
    "is what a map would give, by numbers that are each given once",
    { steps: Schema.Array(Step).check(Schema.isMinLength(30)) },
    ({ steps }) => {
      const slots = new SlotMap<number>()
      const map = new Map<number, number>()
      const given: Array<number> = []
      for (const [index, step] of steps.entries()) {
        if (step === "add") {
          const token = slots.add(index)
          assert.isTrue(Number.isSafeInteger(token))
          assert.isFalse(given.includes(token))
          given.push(token)
          map.set(token, index)
        } else if (given.length > 0) {
          const token = given[step.take % given.length] ?? 0
          assert.strictEqual(slots.take(token), map.get(token))
          map.delete(token)
        }
        assert.deepStrictEqual(
          sorted(slots),
          [...map].sort(([a], [b]) => a - b)
        )
      }
    }
  )
})
