import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Schema, Stream } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { readStream } from "../../src/broker/scan.ts"
import { Health } from "../../src/domain/health.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { readHealth } from "../../src/endpoints/health-store.ts"
import { shareOut } from "../../src/policy/rendezvous.ts"
import { consistentRounds, quiet } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publishMany,
  quickRetry
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { about } from "../kit/outcomes.ts"
import { owners } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import type { WorkerProcess } from "../kit/worker-process.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 3, testTimeout: 60_000 })

const { scenario } = onServer()

const maxInFlight = 6
/** What was answered and has no fact yet is sent again, too: 8 for each request at most (docs/reference/limits.md). */
const maxRepeats = 9 * maxInFlight
const decodeHealth = Schema.decodeUnknownSync(Schema.fromJsonString(Health))

const start = (place: Installation, id: string) =>
  workerProcess(place, { id, leaseTtl: 2_000, logLevel: "Info" })

/** Owner of both partitions; the endpoint's, the first, is not its share once there is another. */
const firstOwner = (place: Installation) =>
  Effect.gen(function* () {
    assert.strictEqual(partitionOf("acme", "hook", 2), 0)
    assert.deepStrictEqual(shareOut(2, ["w1", "w2"]), ["w2", "w1"])
    const worker = yield* start(place, "w1")
    yield* worker.delivering
    return worker
  })

/** Freezes an owner until another has its place, and lets it go on believing that it has it. */
const frozenUntilReplaced = (
  place: Installation,
  first: WorkerProcess,
  meanwhile: Effect.Effect<unknown>
) =>
  Effect.gen(function* () {
    yield* first.freeze
    const second = yield* start(place, "w2")
    yield* second.delivering
    yield* meanwhile
    yield* first.resume
    yield* first.says("another worker has taken a partition over { partition: 0,")
  })

/** Since when an endpoint's circuit is as it is, each time that its health is stored. */
const circuitTimes = Effect.gen(function* () {
  const { names } = yield* Broker
  const stream = `KV_${names.buckets.health}`
  const times: Array<number> = []
  yield* readStream({ stream, subjects: [`$KV.${names.buckets.health}.>`], follow: true }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        if (message.data.length > 0) times.push(decodeHealth(message.string()).circuit.since)
      })
    ),
    Effect.forkScoped
  )
  return times
})

describe.concurrent("two workers that believe they own a partition", () => {
  scenario("spare an endpoint as one does, and tell of its circuit once", (place) =>
    Effect.gen(function* () {
      const count = 200
      const hook = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ backoff: { kind: "fixed", delay: "300 millis" }, maxAttempts: 100 }),
        circuit: { failures: 3, coolDown: "600 millis", maxCoolDown: "600 millis", successes: 2 }
      })
      const facts = yield* history
      const times = yield* circuitTimes
      const first = yield* firstOwner(place)
      yield* publishMany(count)
      yield* eventually(backlogged, (waiting) => waiting >= count - 3)
      yield* facts.count("circuit-opened", 2)
      let frozenAt = 0
      const probed = Effect.gen(function* () {
        frozenAt = yield* Clock.currentTimeMillis
        yield* facts.count("circuit-opened", facts.of("circuit-opened").length + 2)
      })
      yield* frozenUntilReplaced(place, first, probed)
      yield* facts.count("circuit-opened", facts.of("circuit-opened").length + 1)
      const sent = hook.requests.length
      hook.answer({})
      yield* facts.count("delivered", count)
      yield* consistentRounds

      const told = about(facts.facts, "hook").filter(({ kind }) => kind.startsWith("circuit"))
      for (const id of ["w1", "w2"]) {
        const kinds = told.flatMap(({ kind, worker }) => (worker === id ? [kind] : []))
        for (const [index, kind] of kinds.entries())
          assert.notStrictEqual(kind, kinds[index + 1], kinds.join())
      }
      for (const { at, worker } of told) if (worker === "w1") assert.isAtMost(at, frozenAt)
      assert.strictEqual(told.at(-1)?.kind, "circuit-closed")
      const opened = told.filter(({ kind }) => kind === "circuit-opened").length
      assert.isAtMost(sent, maxInFlight + opened + 5)
      assert.deepStrictEqual(
        times.toSorted((a, b) => a - b),
        times
      )
      yield* eventually(readHealth("acme", "hook"), ({ health }) => health === undefined)
      assert.strictEqual((yield* owners(2))[0], "w2")
    })
  )

  scenario(
    "drain a backlog once: what is sent twice is what the former one had in flight",
    (place) =>
      Effect.gen(function* () {
        const count = 1_500
        const hook = yield* gate
        yield* endpoint({ url: hook.url, maxInFlight })
        const facts = yield* history
        const first = yield* firstOwner(place)
        yield* publishMany(count)
        yield* eventually(backlogged, (waiting) => waiting >= count - 200)
        yield* hook.open
        yield* hook.received(300)
        let sent = 0
        const replaced = hook.received(400).pipe(
          Effect.tap(() =>
            Effect.sync(() => {
              sent = hook.requests.length
            })
          )
        )
        yield* frozenUntilReplaced(place, first, replaced)
        yield* quiet
        assert.isBelow(sent, count)
        assert.isAtMost(hook.requests.length, count + maxRepeats)
        // What either writes of a message that the other has just removed expires (retry-records.ts).
        const delivered = facts.of("delivered", "delivered-late")
        assert.lengthOf(new Set(delivered.map(({ event }) => event)), count)
        assert.isAtMost(delivered.length, count + maxRepeats)
        assert.lengthOf(facts.of("dead-lettered", "attempt-failed"), 0)
      })
  )
})
