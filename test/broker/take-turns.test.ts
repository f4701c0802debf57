import { assert, describe, it } from "@effect/vitest"
import { TakeTurns } from "../../src/broker/take-turns.ts"
import type { Timers } from "../../src/time/timers.ts"
import { systemTimers, useTimers } from "../../src/time/timers.ts"

/** Time that passes only by what is taken, ms each; a turn of the loop ends where `turn` is called. */
const inMadeTime = (costMs: number, story: (world: MadeLoop) => void) => {
  const world = new MadeLoop(costMs)
  const stop = useTimers({
    ...systemTimers,
    monotonicMs: () => world.now,
    immediate: (run) => void world.due.push(run)
  } satisfies Timers)
  try {
    story(world)
  } finally {
    stop()
  }
}

class MadeLoop {
  now = 1_000
  readonly due: Array<() => void> = []
  readonly taken: Array<string> = []
  readonly turns = new TakeTurns()
  readonly #costMs: number

  constructor(costMs: number) {
    this.#costMs = costMs
  }

  line(name: string) {
    return this.turns.line<number>((message) => {
      this.taken.push(`${name}${message}`)
      this.now += this.#costMs
    })
  }

  /** Ends a turn of the loop. Returns what is taken after it. */
  turn(): ReadonlyArray<string> {
    const before = this.taken.length
    for (const run of this.due.splice(0)) run()
    return this.taken.slice(before)
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

describe("messages from a broker", () => {
  it("are taken at once while that takes no time", () =>
    inMadeTime(0, (world) => {
      const line = world.line("a")
      for (const number of numbers(1_000)) line.take(number)
      assert.lengthOf(world.taken, 1_000)
      assert.deepStrictEqual(world.turn(), [])
    }))

  it("are taken for 3 ms a turn, in their order, the first eight whatever they take", () =>
    inMadeTime(1, (world) => {
      const line = world.line("a")
      for (const number of numbers(19)) line.take(number)
      assert.lengthOf(world.taken, 10)
      assert.lengthOf(world.turn(), 3)
      assert.lengthOf(world.turn(), 3)
      assert.lengthOf(world.turn(), 3)
      assert.deepStrictEqual(world.turn(), [])
      assert.deepStrictEqual(
        world.taken,
        numbers(19).map((number) => `a${number}`)
      )
    }))

  it("are taken one of each line in turn, so that a long line holds up no other", () =>
    inMadeTime(1, (world) => {
      const long = world.line("a")
      const short = world.line("b")
      for (const number of numbers(100)) long.take(number)
      short.take(0)
      assert.deepStrictEqual(world.turn(), ["a10", "b0", "a11"])
    }))

  it("are taken at once again after the line", () =>
    inMadeTime(1, (world) => {
      const line = world.line("a")
      for (const number of numbers(11)) line.take(number)
      assert.deepStrictEqual(world.turn(), ["a10"])
      line.take(11)
      assert.strictEqual(world.taken.at(-1), "a11")
    }))

  it("are taken one of each key in turn where a line has many", () =>
    inMadeTime(1, (world) => {
      const asked: Array<string> = []
      const keyOf = (message: string) => {
        asked.push(message)
        return message[0] ?? ""
      }
      const take = world.turns.lines(keyOf, (message: string) => {
        world.taken.push(message)
        world.now++
      })
      for (const number of numbers(100)) take(`a${number}`)
      take("b0")
      // What is taken at once needs no key.
      assert.strictEqual(asked[0], "a10")
      assert.deepStrictEqual(world.turn(), ["a10", "b0", "a11"])
      take("b1")
      assert.deepStrictEqual(world.turn(), ["a12", "b1", "a13"])
    }))

  it("are handed back where a line is given up", () =>
    inMadeTime(1, (world) => {
      const line = world.line("a")
      for (const number of numbers(14)) line.take(number)
      assert.deepStrictEqual(line.clear(), [10, 11, 12, 13])
      assert.deepStrictEqual(world.turn(), [])
    }))
})
