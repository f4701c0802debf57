import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { makeGate } from "../../src/broker/gate.ts"
import type { PubAck } from "../../src/broker/publication.ts"
import type { Progress } from "../../src/domain/delivery.ts"
import type { Plan } from "../../src/domain/fact.ts"
import type { FanOutParts } from "../../src/routing/fan-out.ts"
import type { LargeEvent } from "../../src/routing/large-events.ts"
import { RouterStops } from "../../src/routing/large-events.ts"
import { candidates } from "../../src/routing/plan.ts"
import type { Located, RoutingProgress } from "../../src/routing/routing-progress.ts"
import { nothingRouted } from "../../src/routing/routing-progress.ts"
import { RoutingRecovery } from "../../src/routing/routing-recovery.ts"
import type { RoutingServices } from "../../src/routing/routing-services.ts"
import { elapsedMs } from "../../src/time/elapsed.ts"
import { clock } from "../../src/time/timers.ts"
import { MemoryBroker } from "../delivery/in-memory.ts"
import { endpointIds, event, makeMessage, planFor } from "./made-routing.ts"

const safeRepublishMs = 60_000
const failed: Progress = { attempts: 1, lastStatus: 503 }

interface World {
  /** Endpoints that want the event now. */
  readonly endpoints: ReadonlyArray<string>
  /** A plan that the history holds, and a router stored so recently that its id is known. */
  readonly earlier: Plan | undefined
  readonly located: Located
  readonly isRepeat: boolean
  readonly areDeliveriesTaken: boolean
  /** An endpoint whose delivery the fan-out leaves to recovery: it may be stored. */
  readonly leaves: string | undefined
  /** Collects what ends the deliveries of a fan-out. They end at once where it is undefined. */
  readonly ends: Array<() => void> | undefined
  /** The turns of a large event. */
  readonly large: LargeEvent | undefined
}

const usual: World = {
  ...{ endpoints: ["hook"], earlier: undefined, isRepeat: false },
  ...{ areDeliveriesTaken: true, leaves: undefined, ends: undefined, large: undefined },
  located: { isSent: false, failed: undefined }
}

/** Recovers the event from what is known of it, and writes down each request to the broker. */
const recover = Effect.fnUntraced(function* (
  progress: RoutingProgress,
  changes: Partial<World> = {}
) {
  const world = { ...usual, ...changes }
  const log: Array<string> = []
  const broker = new MemoryBroker()
  const { facts } = broker.history
  const { earlier } = world
  if (earlier !== undefined) {
    const fact = { v: 1, kind: "routed", at: 1, tenant: "acme", endpoint: "_" } as const
    broker.history.store({ ...fact, eventSeq: event.seq, eventAt: event.at, plan: earlier }, "0")
  }
  const listed = {
    isDisabled: false,
    generation: "g",
    revision: 1,
    window: 60_000,
    windows: undefined
  }
  const matching = world.endpoints.map((id) => ({ ...listed, id, key: `acme.${id}` }))
  const all = candidates(matching, [])
  const services = {
    ...{ facts, clock, safeRepublishMs, reached: () => undefined },
    options: { worker: "w1", layout: { partitions: 2 } },
    broker: { largestMessage: () => 5_000 },
    routes: { of: () => ({ subject: { tenant: "acme", type: "paid" }, all, directory: 1 }) },
    endpoints: { pass: Effect.void, isOpen: () => true },
    origins: {
      repeated: () =>
        Effect.sync(() => {
          log.push("claim origin")
          return world.isRepeat ? { eventSeq: 1, eventAt: 1 } : undefined
        })
    },
    plans: {
      storeWithin: (_: number, __: unknown, plan: Plan, at: number) => {
        log.push(`plan ${plan.endpoints.map(({ id }) => id)}${at === 5 ? " as asked" : ""}`)
        const isThere = plan.part === 0 && earlier !== undefined
        return Effect.succeed<PubAck>({ stream: "", seq: isThere ? 1 : 9, duplicate: isThere })
      }
    },
    deliveries: Object.assign(makeGate("closed", "open"), {
      isHealthy: () => world.areDeliveriesTaken
    }),
    store: {
      enqueue: ({ endpoint, progress }: { endpoint: string; progress: Progress }) => {
        log.push(`queue ${endpoint}${progress.attempts > 0 ? ` after ${progress.attempts}` : ""}`)
        return Effect.succeed<PubAck>({ stream: "", seq: 1, duplicate: false })
      }
    }
  }
  const fanOut: FanOutParts = ({ planCommit }, _, { onBegun, onComplete, onFallback }) => {
    const { event, plan, stored } = planCommit
    log.push(...plan.endpoints.map(({ id }) => `fan out ${id}`))
    onBegun?.()
    const { ends, leaves } = world
    if (ends !== undefined) return void ends.push(onComplete)
    if (leaves === undefined || stored === undefined) return onComplete()
    const sent = plan.endpoints.map(({ id }) => id).filter((id) => id !== leaves)
    const known = { ...nothingRouted(event), parts: [stored], sent: new Set(sent) }
    onFallback({ known, tried: new Set([leaves]) })
  }
  const recovery = new RoutingRecovery(
    services as unknown as RoutingServices,
    fanOut,
    (_, { id }) => {
      log.push(`locate ${id}`)
      return Effect.succeed(world.located)
    }
  )
  const { answers, message } = makeMessage()
  const routed = recovery.route(message, () => undefined, progress, world.large)
  const exit = yield* Effect.exit(broker.run(routed))
  return { log, answers, error: Exit.isFailure(exit) ? String(exit.cause) : undefined, broker }
})

const stored = (plan: Plan) => ({ ...nothingRouted(event), parts: [{ plan, seq: 1 }] })
const late = () => ({ began: elapsedMs() - safeRepublishMs })

describe("an event on the recovery path", () => {
  const plan = planFor("a", "b")
  const asked = { plan: planFor("a"), at: 5 }

  for (const [what, progress, world, log] of [
    [
      "is planned where it has no plan",
      { known: undefined },
      {},
      ["claim origin", "plan hook", "fan out hook"]
    ],
    [
      "is stored where deliveries were not taken just now",
      { known: undefined },
      { areDeliveriesTaken: false },
      ["claim origin", "plan hook", "queue hook"]
    ],
    [
      "follows what the fan-out leaves",
      { known: undefined },
      { endpoints: ["a", "b"], leaves: "b" },
      ["claim origin", "plan a,b", "fan out a", "fan out b", "locate b", "queue b"]
    ],
    [
      "follows the plan whose append was tried",
      { known: undefined, asked },
      {},
      ["claim origin", "plan a as asked", "fan out a"]
    ],
    [
      "follows the plan that was there before the one whose append was tried",
      { known: undefined, asked },
      { earlier: plan },
      ["claim origin", "plan a as asked", "locate a", "queue a", "locate b", "queue b"]
    ],
    [
      "follows its stored plan, whoever wants it now",
      { known: stored(plan) },
      {},
      ["locate a", "queue a", "locate b", "queue b"]
    ],
    [
      "is not stored for who has it",
      { known: { ...stored(plan), sent: new Set(["a"]) } },
      {},
      ["locate b", "queue b"]
    ],
    [
      "is not stored for whom it was found for",
      { known: stored(plan) },
      { located: { isSent: true, failed: undefined } },
      ["locate a", "locate b"]
    ],
    [
      "is stored with the progress that was found",
      { known: stored(planFor("a")) },
      { located: { isSent: false, failed } },
      ["locate a", "queue a after 1"]
    ],
    [
      "is stored with the progress that was known",
      { known: { ...stored(planFor("a")), failed: new Map([["a", failed]]) } },
      {},
      ["locate a", "queue a after 1"]
    ],
    [
      "is searched for only where the fan-out may have stored it",
      { known: stored(plan), tried: new Set(["b"]) },
      {},
      ["queue a", "locate b", "queue b"]
    ]
  ] satisfies ReadonlyArray<
    readonly [string, RoutingProgress, Partial<World>, ReadonlyArray<string>]
  >)
    it.effect(what, () =>
      Effect.gen(function* () {
        const done = yield* recover(progress, world)
        assert.deepStrictEqual(done.log, log)
        assert.deepStrictEqual(done.answers, ["ack"])
        assert.isUndefined(done.error)
      })
    )

  it.effect("goes to nobody where it repeats another", () =>
    Effect.gen(function* () {
      const { answers, broker, log } = yield* recover({ known: undefined }, { isRepeat: true })
      assert.deepStrictEqual(log, ["claim origin"])
      assert.deepStrictEqual(broker.history.stored[0]?.fact.plan?.endpoints, [])
      assert.deepStrictEqual(answers, ["ack"])
    })
  )

  it.effect("has its plan in parts, each after the deliveries of the one before have begun", () =>
    Effect.gen(function* () {
      const endpoints = endpointIds(5)
      const { log } = yield* recover({ known: undefined }, { endpoints })
      const parts = log.filter((line) => line.startsWith("plan"))
      assert.isAbove(parts.length, 1)
      assert.deepStrictEqual(
        parts.flatMap((line) => line.slice("plan ".length).split(",")),
        endpoints
      )
      let planned: ReadonlyArray<string> = []
      let begun = 0
      for (const line of log) {
        if (line.startsWith("fan out")) begun++
        if (!line.startsWith("plan")) continue
        assert.strictEqual(begun, planned.length, "no part is planned before the last has begun")
        planned = [...planned, ...line.slice("plan ".length).split(",")]
      }
      assert.strictEqual(begun, endpoints.length)
    })
  )
})

describe("a large event whose router stops between two parts", () => {
  it.effect("is given back once what was begun of it has ended", () =>
    Effect.gen(function* () {
      const ends: Array<() => void> = []
      const turn = () => Effect.fail(new RouterStops())
      const large = { turn, over: () => undefined, leave: () => undefined }
      const world = { endpoints: endpointIds(5), ends, large }
      const routing = yield* Effect.forkChild(recover({ known: undefined }, world), {
        startImmediately: true
      })
      assert.lengthOf(ends, 1)
      yield* Effect.yieldNow
      assert.isUndefined(routing.pollUnsafe())
      for (const end of ends) end()
      const { answers, error } = yield* Fiber.join(routing)
      assert.include(error, "the worker stops")
      assert.deepStrictEqual(answers, [])
    })
  )
})

describe("an event that comes too late to the recovery path", () => {
  const plan = planFor("a", "b")

  for (const [what, progress] of [
    ["without a plan", { known: undefined }],
    ["with a plan whose append was tried", { known: undefined, asked: { plan, at: 5 } }],
    ["with a plan that is not done", { known: { ...stored(plan), sent: new Set(["a"]) } }],
    [
      "with a part that is done and others that are not",
      { known: { ...stored({ ...plan, last: false }), sent: new Set(["a", "b"]) } }
    ]
  ] satisfies ReadonlyArray<readonly [string, RoutingProgress]>)
    it.effect(`is given back ${what}, and nothing is asked or stored for it`, () =>
      Effect.gen(function* () {
        const { answers, error, log } = yield* recover({ ...progress, ...late() })
        assert.deepStrictEqual(log, [])
        assert.deepStrictEqual(answers, [])
        assert.include(error, "it was not routed within 1 min")
      })
    )

  it.effect("is finished where all have it", () =>
    Effect.gen(function* () {
      const known = { ...stored(plan), sent: new Set(["a", "b"]) }
      const { answers, log } = yield* recover({ known, ...late() })
      assert.deepStrictEqual(log, [])
      assert.deepStrictEqual(answers, ["ack"])
    })
  )
})
