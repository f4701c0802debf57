import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Plan } from "../../src/domain/fact.ts"
import { PlanCommit } from "../../src/routing/plan-commit.ts"
import type { PlanStore } from "../../src/routing/plan-store.ts"
import { elapsedMs } from "../../src/time/elapsed.ts"
import { useTimers } from "../../src/time/timers.ts"
import { movedTime, virtualTimers } from "../kit/moved-time.ts"

const event = { seq: 7, at: 1, tenant: "acme", type: "a", id: "e", content: {} }
const plan: Plan = { part: 0, last: true, endpoints: [], skipped: [] }

/** A history that another router has told of the event's plan, longer ago than it remembers ids. */
const told = () => {
  const asked: Array<string> = []
  const plans: PlanStore = {
    safeRepublishMs: 60_000,
    tryStore: () => void asked.push("store"),
    storeWithin: () => Effect.die("it must not be stored a second time"),
    find: () =>
      Effect.sync(() => {
        asked.push("find")
        return [{ plan, seq: 3 }]
      })
  }
  return { asked, planCommit: new PlanCommit(plans, event, plan, 1, elapsedMs()) }
}

describe("a plan that is still to be told", () => {
  it.effect("is looked for first after the machine was suspended for minutes", () =>
    Effect.gen(function* () {
      const { runs, timers } = virtualTimers()
      const time = movedTime(timers)
      const putBack = useTimers(time.timers)
      yield* Effect.addFinalizer(() => Effect.sync(putBack))
      const { asked, planCommit } = told()
      time.suspend(300_000)
      runs(1)
      assert.isUndefined(planCommit.piggyback())
      planCommit.commit()
      assert.strictEqual(yield* planCommit.committed, 3)
      assert.isTrue(planCommit.isUnsure)
      assert.deepStrictEqual(asked, ["find"])
    })
  )

  it("is told with the end while the history surely knows its id", () => {
    assert.strictEqual(told().planCommit.piggyback(), plan)
  })
})
