import { assert, describe, it } from "@effect/vitest"
import { onTestFinished } from "vitest"
import type { Answer } from "../../../src/intake/gateway/answer.ts"
import { useTimers } from "../../../src/time/timers.ts"
import { bareHandler } from "../../kit/bare-handler.ts"
import { virtualTimers } from "../../kit/moved-time.ts"

/** A gateway with few places, a clock that goes when the test says so, and requests that end so, too. */
const setUp = (requests = 0) => {
  const { runs, timers } = virtualTimers()
  let busyMs = 0
  onTestFinished(useTimers({ ...timers, monotonicMs: () => timers.monotonicMs() + busyMs }))
  /** Lets time pass in which no timer fires. */
  const passes = (ms: number) => {
    busyMs += ms
  }
  const answered: Array<number> = []
  /** Answers the requests that have a place. */
  const underWay: Array<(answer: Answer) => void> = []
  const take = () => new Promise<Answer>((resolve) => underWay.push(resolve))
  const handler = bareHandler(take, requests)
  const ask = () => handler.ask((status) => answered.push(status))
  return { ...handler, answered, ask, passes, runs, underWay }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const taken: Answer = { status: 200, outcome: "taken" }

describe("a request for which there is no place", () => {
  it("waits for one for 32 ms, and then is refused", () => {
    const { answered, ask, runs } = setUp()
    ask()
    runs(31)
    assert.deepStrictEqual(answered, [])
    runs(1)
    assert.deepStrictEqual(answered, [503])
  })

  it("is refused at once where 512 others of its source wait, where the gateway stops, and where the broker is silent", () => {
    const { admission, answered, ask, runs, state } = setUp()
    for (let n = 0; n < 512; n++) ask()
    assert.deepStrictEqual(answered, [])
    ask()
    assert.deepStrictEqual(answered, [503])
    runs(32)
    assert.lengthOf(answered, 513)
    ask()
    assert.lengthOf(answered, 513)
    runs(32)
    state.isStopping = true
    ask()
    assert.lengthOf(answered, 515)
    state.isStopping = false
    admission.unanswered("the broker does not answer")
    ask()
    assert.lengthOf(answered, 516)
  })

  it("is refused in time while the gateway is at work on others", async () => {
    const { answered, ask, passes, underWay } = setUp(4)
    ask()
    await turn()
    ask()
    ask()
    passes(32)
    assert.deepStrictEqual(answered, [])
    // One place is free: the first of them has it.
    underWay[0]?.(taken)
    await turn()
    assert.deepStrictEqual(answered, [200, 503])
    assert.lengthOf(underWay, 2)
    ask()
    passes(32)
    ask()
    assert.deepStrictEqual(answered, [200, 503, 503])
  })

  it("gets one that becomes free, before others that come later", async () => {
    // One source may have a quarter of 4 places.
    const { answered, ask, runs, underWay } = setUp(4)
    ask()
    await turn()
    assert.lengthOf(underWay, 1)
    const gone = ask()
    ask()
    ask()
    await turn()
    assert.lengthOf(underWay, 1)
    assert.deepStrictEqual(answered, [])
    gone.destroyed = true
    underWay[0]?.(taken)
    await turn()
    assert.deepStrictEqual(answered, [200])
    assert.lengthOf(underWay, 2)
    // Those that wait go first.
    ask()
    underWay[1]?.(taken)
    await turn()
    assert.lengthOf(underWay, 3)
    runs(32)
    assert.deepStrictEqual(answered, [200, 200, 503])
    underWay[2]?.(taken)
    await turn()
    assert.deepStrictEqual(answered, [200, 200, 503, 200])
    assert.lengthOf(underWay, 3)
  })
})
