import { assert, describe } from "@effect/vitest"

import { Clock, Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { findPartitions, readInstalled, readLayoutRecord } from "../../src/broker/installed.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import type { RepartitionStep } from "../../src/operations/repartition/repartition.ts"
import { repartition } from "../../src/operations/repartition/repartition.ts"
import { run } from "../cli/in-process.ts"
import { start } from "../cli/running.ts"
import { crashBroker } from "../kit/broker-crash.ts"
import { consistentRounds, noRecords } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import {
  endpoint,
  eventually,
  history,
  publishMany,
  quickRetry,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { about } from "../kit/outcomes.ts"
import type { Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

const flagsOf = ({ eventRoot, prefix, url }: Installation) => [
  "--nats",
  url,
  "--prefix",
  prefix,
  "--events",
  eventRoot
]

/** Starts a change and kills it when it has emptied its first partition. */
const brokenOff = (partitions: number, flags: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const change = yield* start("repartition", String(partitions), "--json", ...flags)
      yield* change.until((out) => out.some((line) => line.includes('"emptied"')))
      yield* change.signal("SIGKILL")
      yield* change.ended
      assert.isFalse(change.out.some((line) => line.includes('"done"')))
      assert.strictEqual((yield* readLayoutRecord).record.change?.stage, "moving")
      yield* endLeases
    })
  )

const refused = (to: number) => repartition({ to, tell: () => Effect.void })

const ids = (kind: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${kind}-${index}`)
const waitingIds = ids("paused", 8)
const failingIds = ids("failing", 6)
const deadIds = ids("dead", 4)
const all = [...waitingIds, ...failingIds, ...deadIds]

const requestKey = ({ headers, path }: Received) =>
  `${headers["webhook-id"]} to ${path}, attempt ${headers["petrel-attempt"]}`

/** How many wait, counted while nothing moves: what does is counted twice. */
const waitingStill = Effect.map(
  eventually(Effect.all([waitingMessages, waitingMessages]), ([one, two]) => one === two),
  ([count]) => count
)

describe("another number of partitions", () => {
  scenario(
    "moves all that waits, wherever it waits and however often it is killed, and nothing twice",
    (place) =>
      Effect.gen(function* () {
        const flags = flagsOf(place)
        let isBroken = true
        const hook = yield* receiver({
          answer: ({ path }) => ({
            status:
              !isBroken || path.startsWith("/paused") ? 200 : path.startsWith("/dead") ? 500 : 503
          })
        })
        const retry = quickRetry({
          backoff: { kind: "fixed", delay: "5 seconds" },
          maxAttempts: 2,
          window: "1 hour"
        })
        for (const id of all)
          yield* endpoint({
            id,
            url: `${hook.url}/${id}`,
            types: id.startsWith("paused") ? ["bulk", "late"] : ["few", "late"],
            retry,
            maxInFlight: 4,
            ...(id.startsWith("dead")
              ? { circuit: { failures: 2, coolDown: "2 seconds", rate: "none" } as const }
              : {})
          })
        yield* Effect.forEach(waitingIds, (id) =>
          pauseEndpoint({ tenant: "acme", endpoint: id }, "test", "cli")
        )
        const facts = yield* history
        const routes = yield* worker({ id: "r0", roles: ["router"] })
        const first = yield* worker({ maxWaiting: 6, roles: ["deliver"] })
        yield* publishMany(60, "bulk")
        yield* publishMany(10, "few")
        yield* facts.until(
          (facts) =>
            failingIds.every(
              (id) => about(facts, id).filter(({ kind }) => kind === "attempt-failed").length === 10
            ) &&
            deadIds.every((id) => about(facts, id).some(({ kind }) => kind === "circuit-opened"))
        )
        yield* routes.stop
        const alive = yield* Effect.flip(refused(8))
        assert.include(alive.message, "the worker w1 is running")
        yield* first.stop
        const waits = new Set(facts.of("attempt-failed").map(({ wait }) => wait))
        assert.deepStrictEqual(waits, new Set(["nak", "schedule"]))

        // What comes now is routed, and stays in the queues.
        const router = yield* worker({ id: "r1", roles: ["router"] })
        yield* publishMany(30, "late")
        yield* facts.until((facts) => facts.filter(({ kind }) => kind === "routed").length === 100)
        yield* router.stop
        const before = yield* waitingStill
        const deliveries = 60 * 8 + 10 * 10 + 30 * 18

        yield* brokenOff(8, flags)
        const other = yield* Effect.flip(refused(5))
        assert.include(other.message, "run `petrel repartition 8` first")
        const early = yield* Effect.flip(worker({ id: "early" }))
        assert.include(early.message, "being changed from 4 to 8")
        const resumed = yield* run("repartition", "8", ...flags)
        assert.strictEqual(resumed.code, 0, resumed.err.join())
        assert.strictEqual((yield* findPartitions).partitions, 8)
        // One that was on its way to its backlog when its worker stopped stood in both.
        assert.isAtLeast(before, deliveries)
        assert.strictEqual(yield* waitingStill, deliveries)

        yield* brokenOff(3, flags)
        assert.strictEqual((yield* run("repartition", "3", ...flags)).code, 0)
        assert.deepStrictEqual(yield* findPartitions, {
          partitions: 3,
          begun: 3,
          missing: []
        })
        assert.strictEqual(yield* waitingStill, deliveries)
        assert.strictEqual((yield* readInstalled).partitions, 3)

        isBroken = false
        const restarted = yield* Clock.currentTimeMillis
        yield* worker({ id: "w2" })
        yield* Effect.forEach(waitingIds, (id) =>
          resumeEndpoint({ tenant: "acme", endpoint: id }, "cli")
        )
        const accounts = yield* consistentRounds
        assert.strictEqual(accounts.length, deliveries)
        assert.strictEqual(new Set(hook.requests.map(requestKey)).size, hook.requests.length)
        yield* noRecords

        for (const fact of facts.of("attempt-failed")) {
          const { at, attempt, endpoint, event, nextAttemptAt } = fact
          if (nextAttemptAt === undefined || at > restarted) continue
          const next = hook.requests.find(
            ({ headers, path }) =>
              path === `/${endpoint}` &&
              headers["webhook-id"] === event &&
              headers["petrel-attempt"] === String((attempt ?? 0) + 1)
          )
          assert.isAtLeast(next?.at ?? 0, nextAttemptAt - 25)
        }
      }),
    { partitions: 4 }
  )

  scenario(
    "sends a worker away that was frozen meanwhile",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        const leaseTtl = 1_000
        const frozen = yield* workerProcess(place, { id: "frozen", leaseTtl })
        yield* frozen.delivering
        yield* frozen.freeze
        yield* endLeases
        yield* repartition({ to: 5, tell: () => Effect.void })
        // Longer than its leases would have lasted: until then it may send.
        yield* Effect.sleep(leaseTtl)
        yield* publishMany(3, "a")
        yield* frozen.resume
        yield* frozen.says("the number of partitions was changed since this worker began")
        yield* worker()
        assert.lengthOf(yield* consistentRounds, 3)
        assert.strictEqual(hook.requests.length, 3)
      }),
    { partitions: 2 }
  )

  scenario(
    "outlives a broker that is killed in the middle",
    (_, server) =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* Effect.forEach(waitingIds, (id) => endpoint({ id, url: `${hook.url}/${id}` }))
        const facts = yield* history
        const router = yield* worker({ roles: ["router"] })
        yield* publishMany(50, "a")
        yield* facts.planned(50)
        yield* router.stop
        const broker = yield* Broker
        let isKilled = false
        const tell = ({ event }: RepartitionStep) => {
          if (event !== "looked-at" || isKilled) return Effect.void
          isKilled = true
          return Effect.provideService(crashBroker(server), Broker, broker)
        }
        const first = yield* Effect.exit(repartition({ to: 8, tell }))
        if (first._tag === "Failure") {
          yield* endLeases
          yield* repartition({ to: 8, tell })
        }
        yield* worker()
        assert.lengthOf(yield* consistentRounds, 50 * waitingIds.length)
        assert.strictEqual(new Set(hook.requests.map(requestKey)).size, hook.requests.length)
        assert.isTrue(isKilled)
      }),
    { partitions: 4 }
  )
})
