import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import type { LayoutRecord } from "../../src/broker/installed.ts"
import { layoutKey, readLayout } from "../../src/broker/installed.ts"
import { writeValue } from "../../src/broker/values.ts"
import { announcePresence, readEnqueuers } from "../../src/cluster/enqueuer-presence.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { repartition } from "../../src/operations/repartition/repartition.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { endpoint, history, publishMany, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer, outage } from "../kit/scenario.ts"
import { replayTo } from "./replaying.ts"

const { scenario } = onServer()

const to = (partitions: number) => repartition({ to: partitions, tell: () => Effect.void })

const changed: LayoutRecord = { v: 3, partitions: 2, epoch: 1, beyond: 0 }
const change = Effect.flatMap(Broker, ({ names }) =>
  writeValue(names.buckets.workers, layoutKey, JSON.stringify(changed))
)

describe.concurrent("a replay and another number of partitions", () => {
  scenario("exclude each other: the replay is under way, and can go on after it was stopped", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const id = "slow"
      yield* endpoint({ id, url: hook.url, types: ["none"] })
      const facts = yield* history
      const first = yield* worker()
      yield* publishMany(30)
      yield* facts.planned(30)
      yield* pauseEndpoint({ tenant: "acme", endpoint: id }, undefined, "test")
      yield* first.stop
      let held = () => {}
      const isHeld = new Promise<void>((resolve) => {
        held = resolve
      })
      const replaying = yield* Effect.forkChild(
        replayTo(id, { pace: { queue: 4, all: 20 }, held: () => held() })
      )
      yield* Effect.promise(() => isHeld)
      const refused = yield* Effect.flip(to(5))
      assert.match(
        refused.message,
        /^a replay to acme\/slow is under way \(by ana@host, on .*, process \d+\): wait until/
      )
      assert.strictEqual((yield* readLayout).partitions, 2)

      yield* Fiber.interrupt(replaying)
      yield* to(5)
      yield* worker({ id: "second" })
      yield* resumeEndpoint({ tenant: "acme", endpoint: id }, "test")
      yield* replayTo(id)
      yield* consistentRounds
      assert.lengthOf(facts.of("replayed"), 30)
      assert.lengthOf(hook.requests, 30)
    })
  )

  scenario("exclude each other: the replay looks for a change after it has made itself known", () =>
    Effect.gen(function* () {
      const broker = yield* Broker
      yield* endpoint()
      yield* publishMany(1)
      const announce = Effect.provideService(Effect.ignore(change), Broker, broker)
      const altered = yield* alteredBroker(({ publish }) => ({
        publish: (subject, ...rest) =>
          Effect.tap(publish(subject, ...rest), () =>
            subject.includes(".enqueuer.") ? announce : Effect.void
          )
      }))
      const refused = yield* Effect.flip(Effect.provideService(replayTo("hook"), Broker, altered))
      assert.match(refused.message, /has been changed meanwhile: run the same command again/)
      const { names, streamInfo } = broker
      const { state } = yield* streamInfo("look", names.history, { subjects_filter: ">" })
      assert.deepStrictEqual(
        Object.keys(state.subjects ?? {}).filter((subject) => subject.endsWith("replayed")),
        []
      )
    })
  )
})

/** As when the system stops a process for a while (ms) and it goes on later: no timer runs meanwhile. */
const frozen = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

describe("who sends something again", () => {
  scenario("is known of until it has finished, and looks again where it may have been missed", () =>
    Effect.gen(function* () {
      let looks = 0
      const unchanged = Effect.sync(() => {
        looks++
      })
      const about = { what: "a replay to acme/crm", by: "ana@host", ttl: 1_000 }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const safe = yield* announcePresence({ ...about, instance: "a", returned: unchanged })
          assert.deepInclude((yield* readEnqueuers)[0], { by: "ana@host", pid: process.pid })
          yield* safe
          assert.strictEqual(looks, 1)
          frozen(600)
          yield* safe
          assert.strictEqual(looks, 2)
        })
      )
      assert.deepStrictEqual(yield* readEnqueuers, [])
    })
  )

  outage("waits for a broker that is away for longer than others count on it", (_, server) =>
    Effect.gen(function* () {
      let looks = 0
      const unchanged = Effect.sync(() => {
        looks++
      })
      const safe = yield* announcePresence({
        ...{ instance: "a", what: "a replay", by: "ana", ttl: 1_000 },
        returned: unchanged
      })
      yield* Effect.promise(server.kill9)
      frozen(600)
      const waiting = yield* Effect.forkChild(safe)
      yield* Effect.promise(server.restart)
      yield* Fiber.join(waiting)
      // Once for each time that it was missed, which may be again while the broker starts.
      assert.isAtLeast(looks, 2)
      assert.lengthOf(yield* readEnqueuers, 1)
    })
  )

  scenario("stops where the partitions have changed while it was missed", () =>
    Effect.gen(function* () {
      let isChanged = false
      const unchanged = Effect.suspend(() => (isChanged ? Effect.fail("changed") : Effect.void))
      const safe = yield* announcePresence({
        ...{ instance: "a", what: "a replay", by: "ana", ttl: 1_000 },
        returned: unchanged
      })
      isChanged = true
      yield* safe
      frozen(600)
      assert.strictEqual(yield* Effect.flip(safe), "changed")
    })
  )
})
