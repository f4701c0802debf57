import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { Retried, RetryNow } from "../../../src/cluster/command.ts"
import { RememberedRetries } from "../../../src/delivery/commands/remembered-retries.ts"
import { withVirtualTime } from "../../kit/moved-time.ts"

const command = (change: Partial<RetryNow> = {}): RetryNow => ({
  ...{ _tag: "RetryNow", tenant: "acme", endpoint: "e", ignoreRetryAfter: false, job: "one" },
  ...change
})

const nothing: Retried = { moved: 0, inFlight: 0, inBacklog: 0, left: 0 }

/** What is carried out, where each time moves one more: the answer says how often it was. */
const counting = () => {
  const remembered = new RememberedRetries()
  let moved = 0
  const carriedOut = Effect.sync((): Retried => ({ ...nothing, moved: ++moved }))
  return {
    remembered,
    ask: (change: Partial<RetryNow> = {}) =>
      Effect.runSync(remembered.once(command(change), carriedOut)).moved
  }
}

describe("commands to try now that are remembered", () => {
  it("are carried out once for a job that asks again", () => {
    const { ask } = counting()
    assert.deepStrictEqual([ask(), ask()], [1, 1])
    // Another tenant's job is another one, whatever its id.
    assert.deepStrictEqual([ask({ tenant: "globex" }), ask()], [2, 1])
    // A job that goes on to another endpoint has stored what became of the first one.
    assert.deepStrictEqual([ask({ endpoint: "f" }), ask()], [3, 4])
  })

  it("are carried out each time for whoever is no job", () => {
    const { remembered } = counting()
    let count = 0
    const { job: _, ...asked } = command()
    const carriedOut = Effect.sync(() => {
      count++
      return nothing
    })
    for (let n = 0; n < 2; n++) Effect.runSync(remembered.once(asked, carriedOut))
    assert.strictEqual(count, 2)
  })

  it("are carried out again where they have failed", () => {
    const { ask, remembered } = counting()
    const failed = Effect.runSync(
      Effect.flip(remembered.once(command(), Effect.fail("the broker is away")))
    )
    assert.strictEqual(failed, "the broker is away")
    assert.strictEqual(ask(), 1)
  })

  it.effect("give who asks again meanwhile the same answer", () =>
    Effect.gen(function* () {
      const { remembered } = counting()
      const result = yield* Deferred.make<Retried>()
      const first = yield* Effect.forkChild(remembered.once(command(), Deferred.await(result)), {
        startImmediately: true
      })
      const second = yield* Effect.forkChild(
        remembered.once(command(), Effect.die("carried out twice")),
        { startImmediately: true }
      )
      yield* Deferred.succeed(result, { ...nothing, moved: 7 })
      for (const asker of [first, second]) assert.strictEqual((yield* Fiber.join(asker)).moved, 7)
    })
  )

  it("are forgotten after a minute", () => {
    withVirtualTime(({ runs }) => {
      const { ask } = counting()
      assert.strictEqual(ask(), 1)
      runs(59_000)
      assert.strictEqual(ask(), 1)
      runs(2_000)
      assert.strictEqual(ask(), 2)
    })
  })

  it("are at most 16 of a tenant, the newest, and leave others theirs", () => {
    const { ask } = counting()
    ask({ tenant: "globex" })
    for (let n = 0; n < 17; n++) ask({ job: `job ${n}` })
    assert.strictEqual(ask({ tenant: "globex" }), 1)
    assert.strictEqual(ask({ job: "job 16" }), 18)
    assert.strictEqual(ask({ job: "job 1" }), 3)
    assert.strictEqual(ask({ job: "job 0" }), 19)
  })
})
