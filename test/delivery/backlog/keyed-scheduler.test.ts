import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { NextTurn } from "../../../src/delivery/backlog/keyed-scheduler.ts"
import { KeyedScheduler } from "../../../src/delivery/backlog/keyed-scheduler.ts"

/** A rota whose work for a key ends when the test says how. */
const makeRota = (atOnce: number, atOnceOfTenant = atOnce) => {
  const begun: Array<string> = []
  const open = new Map<string, Deferred.Deferred<NextTurn>>()
  const keyedScheduler = new KeyedScheduler({
    atOnce,
    atOnceOfTenant: () => atOnceOfTenant,
    work: (key) =>
      Effect.suspend(() => {
        begun.push(key)
        const ended = Deferred.makeUnsafe<NextTurn>()
        open.set(key, ended)
        return Deferred.await(ended)
      }),
    run: (work) => void Effect.runFork(work)
  })
  const end = (key: string, next: NextTurn) => {
    const ended = open.get(key)
    assert(ended !== undefined, `nothing is done for ${key}`)
    open.delete(key)
    Deferred.doneUnsafe(ended, Effect.succeed(next))
    // What goes on does so in the fiber's next turn.
    return Effect.runPromise(Effect.yieldNow)
  }
  return { keyedScheduler, begun, end }
}

describe("work for many keys", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("is done for so many at the same time, and for the others in their order", async () => {
    const { begun, end, keyedScheduler } = makeRota(2)
    for (const key of ["a", "b", "c", "d", "c"]) keyedScheduler.wake(key)
    assert.deepStrictEqual(begun, ["a", "b"])
    await end("b", "never")
    assert.deepStrictEqual(begun, ["a", "b", "c"])
    await end("a", "never")
    assert.deepStrictEqual(begun, ["a", "b", "c", "d"])
  })

  it("is done for each tenant in turn, however many keys one of them has", async () => {
    const { begun, end, keyedScheduler } = makeRota(1)
    for (const key of ["big.0", "big.1", "big.2", "big.3", "small.0", "tiny.0"])
      keyedScheduler.wake(key)
    for (const key of ["big.0", "big.1", "small.0", "tiny.0", "big.2"]) await end(key, "never")
    assert.deepStrictEqual(begun, ["big.0", "big.1", "small.0", "tiny.0", "big.2", "big.3"])
  })

  it("leaves room for other tenants while that of one takes long", async () => {
    const { begun, end, keyedScheduler } = makeRota(4, 2)
    for (const key of ["big.0", "big.1", "big.2", "big.3", "small.0"]) keyedScheduler.wake(key)
    assert.deepStrictEqual(begun, ["big.0", "big.1", "small.0"])
    await end("small.0", "at once")
    assert.deepStrictEqual(begun.splice(0), ["big.0", "big.1", "small.0", "small.0"])
    await end("big.1", "at once")
    await end("small.0", "never")
    assert.deepStrictEqual(begun, ["big.2"])
    await end("big.0", "never")
    await end("big.2", "never")
    assert.deepStrictEqual(begun, ["big.2", "big.3", "big.1"])
  })

  it("goes on at once, behind the others, where it says so", async () => {
    const { begun, end, keyedScheduler } = makeRota(1)
    for (const key of ["a", "b"]) keyedScheduler.wake(key)
    await end("a", "at once")
    await end("b", "never")
    assert.deepStrictEqual(begun, ["a", "b", "a"])
  })

  it("is done again for one that was woken meanwhile, never twice at the same time", async () => {
    const { begun, end, keyedScheduler } = makeRota(8)
    keyedScheduler.wake("a")
    keyedScheduler.wake("a")
    keyedScheduler.wake("a")
    assert.deepStrictEqual(begun, ["a"])
    await end("a", "never")
    assert.deepStrictEqual(begun, ["a", "a"])
    await end("a", "never")
    assert.deepStrictEqual(begun, ["a", "a"])
  })

  it("is looked at again after a while, where it has something to do then", async () => {
    const { begun, end, keyedScheduler } = makeRota(8)
    for (const key of ["a", "b"]) keyedScheduler.wake(key)
    await end("a", 500)
    await end("b", 500)
    const hasWork = (key: string) => key === "a"
    keyedScheduler.tick(hasWork, 1_000)
    assert.deepStrictEqual(begun, ["a", "b"])
    vi.advanceTimersByTime(500)
    keyedScheduler.tick(hasWork, 1_000)
    assert.deepStrictEqual(begun, ["a", "b", "a"])
    vi.advanceTimersByTime(999)
    keyedScheduler.tick(() => true, 1_000)
    assert.deepStrictEqual(begun, ["a", "b", "a"])
    vi.advanceTimersByTime(1)
    keyedScheduler.tick(() => true, 1_000)
    assert.deepStrictEqual(begun, ["a", "b", "a", "b"])
  })
})
