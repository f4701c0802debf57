import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { changeOf } from "../../src/alerts/alert-change.ts"
import type { AlertRegister } from "../../src/alerts/alert-register.ts"
import type { AlertRecord } from "../../src/alerts/alert-store.ts"
import { AlertWindows } from "../../src/alerts/alert-windows.ts"
import { EndpointJudge } from "../../src/alerts/endpoint-alerts.ts"
import type { Thresholds } from "../../src/alerts/thresholds.ts"
import { healthy } from "../../src/domain/health.ts"
import type { AttemptOutcome } from "../../src/domain/outcome.ts"
import { makeLive } from "../../src/endpoints/live-endpoint.ts"
import { defaultThresholds } from "../../src/policy/alert-thresholds.ts"
import { clock, timers } from "../../src/time/timers.ts"
import { MemoryBroker } from "../delivery/in-memory.ts"
import { deliveryOf, directoryOf, key, live, outcomeOf } from "../delivery/made-deliveries.ts"
import type { MovedTime } from "../kit/moved-time.ts"
import { clockEvents, withVirtualTime } from "../kit/moved-time.ts"

const minute = 60_000

/** The alerts of one endpoint, in memory, and how they changed. */
const makeRegister = () => {
  const raised = new Set<string>()
  const changes: Array<string> = []
  const record = () =>
    ({
      generation: "g",
      raised: [...raised].map((name) => ({ name, windowMs: defaultThresholds.window }))
    }) as unknown as AlertRecord
  const register = {
    ...{ load: Effect.void, resume: Effect.void },
    entries: () => (raised.size === 0 ? [] : [{ tenant: "acme", endpoint: "hook" }]),
    raised: record,
    renew: () => Effect.void,
    judge: (_, found) =>
      Effect.sync(() => {
        const change = changeOf(record(), found)
        if (change === undefined) return
        const { name } = change.reading
        changes.push(`${change.transition} ${name}`)
        raised.clear()
        if (change.transition !== "clear") raised.add(name)
      })
  } as Pick<AlertRegister, "judge" | "renew"> as AlertRegister
  return { changes, register }
}

/** One endpoint whose outcomes are judged each minute. */
const judging = (time: MovedTime & { runs(ms: number): void }) => {
  const { changes, register } = makeRegister()
  const windows = new AlertWindows({
    ...{ endpoint: () => defaultThresholds, tenant: () => defaultThresholds }
  } as unknown as Thresholds)
  const endpoint = makeLive(key, { ...live.config, alerts: {} }, 1)
  const state = { isOpen: false, isRemoved: false }
  const judge = new EndpointJudge(
    {
      ...{
        clock,
        windows,
        holds: () => true,
        index: 0,
        partitions: 1,
        every: minute,
        dedupe: minute
      },
      ...{ worker: "w", nextId: () => "id" },
      thresholds: {
        ...{ endpoint: () => defaultThresholds, contact: () => undefined }
      } as unknown as Thresholds,
      health: () => ({
        ...healthy("g"),
        circuit: { state: state.isOpen ? "open" : "closed", since: 0 }
      })
    } as ConstructorParameters<typeof EndpointJudge>[0],
    directoryOf({ find: () => (state.isRemoved ? undefined : endpoint) }),
    register,
    () => true
  )
  /** Lets minutes pass, in each of which 10 attempts end so. Returns how alerts changed. */
  const passes = (minutes: number, verdict: AttemptOutcome["verdict"] | undefined) => {
    changes.length = 0
    for (let count = 0; count < minutes; count++) {
      time.runs(minute)
      const at = timers.wallMs()
      for (let each = 0; each < 10 && verdict !== undefined; each++)
        windows.answered(endpoint, deliveryOf({ began: at }), outcomeOf(verdict, { at }), {
          attempts: 0
        })
      Effect.runSync(new MemoryBroker().run(judge.look))
    }
    return [...changes]
  }
  return { isKnown: () => windows.page(key) !== undefined, passes, state }
}

for (const [what, happens] of clockEvents)
  describe(`alerts about endpoints when ${what}`, () => {
    const test = (name: string, run: Parameters<typeof withVirtualTime>[0]) =>
      it(name, () => withVirtualTime(run))

    test("stay raised while deliveries fail, and none is raised anew", (time) => {
      const { passes } = judging(time)
      assert.include(passes(100, "retry"), "raise success-critical")
      happens(time)
      assert.deepStrictEqual(passes(30, "retry"), [])
    })

    test("stay raised while nothing is attempted, until the window has been watched", (time) => {
      const { passes } = judging(time)
      passes(100, "retry")
      assert.deepStrictEqual(passes(2, undefined), [])
      happens(time)
      assert.deepStrictEqual(passes(9, undefined), [])
      // Nothing has succeeded since, so its failures in a row stand.
      assert.deepStrictEqual(passes(3, undefined), ["replace failures-in-row"])
    })

    test("about a circuit clear once it was closed for a window", (time) => {
      const { passes, state } = judging(time)
      passes(80, "delivered")
      state.isOpen = true
      assert.deepStrictEqual(passes(1, "delivered"), ["raise circuit-opened"])
      state.isOpen = false
      assert.deepStrictEqual(passes(1, "delivered"), [])
      happens(time)
      assert.deepStrictEqual(passes(9, "delivered"), [])
      assert.deepStrictEqual(passes(3, "delivered"), ["clear circuit-opened"])
    })

    test("are not raised where all goes well", (time) => {
      const { passes } = judging(time)
      assert.deepStrictEqual(passes(80, "delivered"), [])
      happens(time)
      assert.deepStrictEqual(passes(20, "delivered"), [])
    })
  })

describe("what is counted of an endpoint that only failed", () => {
  it("is kept while it is there, and forgotten with it", () =>
    withVirtualTime((time) => {
      const { isKnown, passes, state } = judging(time)
      passes(1, "retry")
      passes(100, undefined)
      assert.isTrue(isKnown())
      state.isRemoved = true
      passes(1, "retry")
      assert.isFalse(isKnown())
    }))
})
