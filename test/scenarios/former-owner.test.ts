import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { shareOut } from "../../src/policy/rendezvous.ts"
import { consistentRounds, idsForgotten, noRecords } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import { endpoint, history, publish, queued, quickRetry, worker } from "../kit/engine.ts"
import { attempts } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import type { WorkerProcess, WorkerProcessOptions } from "../kit/worker-process.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 9, testTimeout: 60_000 })

const { longScenario, scenario } = onServer()

const leaseTtl = 2_000

/** Owner of both partitions until it is frozen. Afterwards the endpoint's, the first, is not its share. */
const firstWorker = (place: Installation, options: WorkerProcessOptions = {}) => {
  assert.strictEqual(partitionOf("acme", "hook", 2), 0)
  assert.deepStrictEqual(shareOut(2, ["w1", "w2"]), ["w2", "w1"])
  return workerProcess(place, { id: "w1", leaseTtl, logLevel: "Info", ...options })
}

const knows = ({ says }: WorkerProcess) =>
  says("another worker has taken a partition over { partition: 0,")

/** It says what its share is once it is through with all that it had begun in other partitions. */
const isThrough = ({ says }: WorkerProcess) => says("delivers { partitions: [ 1 ]")

const isEnd = ({ kind }: Fact) => kind === "delivered" || kind === "dead-lettered"

/** What was told of attempts and ends, and by whom. */
const told = (facts: ReadonlyArray<Fact>) =>
  facts
    .filter((fact) => fact.kind === "attempt-failed" || isEnd(fact))
    .map(({ attempt, kind, worker }) => [kind, attempt, worker])

/** Who makes the attempts that the retry records are about which are written from now on. */
const recordWriters = Effect.gen(function* () {
  const { connection, names } = yield* natsClients
  const writers: Array<string> = []
  const subscription = connection.subscribe(`$KV.${names.buckets.retries}.>`, {
    callback: (_, message) => {
      if (message.data.length === 0) return
      const record: { readonly outcome?: { readonly fact: Fact } } = message.json()
      if (record.outcome !== undefined) writers.push(record.outcome.fact.worker ?? "")
    }
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => subscription.unsubscribe()))
  const flush = Effect.promise(() => connection.flush())
  yield* flush
  return Effect.as(flush, writers)
})

describe.concurrent("a worker that was frozen until another had its place", () => {
  for (const [origin, topology] of [
    ["its queue", {}],
    // Its former owner is its event's former router too: nothing it stores then is recognised.
    ["its event", { moveDedupe: 200 }]
  ] as const)
    for (const [moment, answers] of [
      ["while the delivery waits for its next attempt", "attempt-failed"],
      ["when the delivery has ended", "delivered"]
    ] as const)
      for (const status of [503, 400]) {
        // The other half differs in the answer only.
        const tell = (status === 503) === (origin === "its queue") ? scenario : longScenario
        tell(
          `decides nothing by an answer that comes ${moment}: ${status}, to what came from ${origin}`,
          (place) =>
            Effect.gen(function* () {
              const { names } = yield* Broker
              const gate = yield* Deferred.make<void>()
              const late = () => Effect.runPromise(Effect.as(Deferred.await(gate), { status }))
              const hook = yield* receiver({ answer: late })
              const retry = quickRetry({ backoff: { kind: "fixed", delay: "3 seconds" } })
              yield* endpoint({ url: hook.url, retry })
              const facts = yield* history
              const writers = yield* recordWriters
              const first = yield* firstWorker(place)
              if (origin === "its event") yield* first.delivering
              yield* publish("a")
              yield* hook.received(1)
              if (origin === "its event")
                assert.isEmpty(yield* queued(0, names.subjects.deliveriesOf(0)))
              yield* first.freeze
              hook.answer(byAttempt(503, 200))
              yield* worker({ id: "w2", leaseTtl })
              yield* facts.count(answers, 1)
              // One finds it when it wakes up, the other has looked who is owner before it comes.
              if (answers === "attempt-failed") yield* Deferred.succeed(gate, undefined)
              yield* first.resume
              yield* knows(first)
              yield* Deferred.succeed(gate, undefined)
              yield* isThrough(first)
              yield* facts.until((all) => all.some(isEnd))
              assert.deepStrictEqual(told(facts.facts), [
                ["attempt-failed", 1, "w2"],
                ["delivered", 2, "w2"]
              ])
              yield* consistentRounds
              yield* noRecords
              assert.deepStrictEqual(yield* writers, ["w2"])
              assert.deepStrictEqual(attempts(hook), [1, 1, 2])
            }),
          topology
        )
      }

  scenario(
    "does nothing about what it had decided, which is done",
    (place) =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 400 } })
        yield* endpoint({ url: hook.url })
        const facts = yield* history
        yield* publish("a")
        const crash = { step: "decided", arrival: 1, signal: "SIGSTOP" } as const
        const first = yield* firstWorker(place, { crash })
        yield* hook.received(1)
        yield* worker({ id: "w2", leaseTtl })
        yield* facts.count("dead-lettered", 1)
        yield* idsForgotten
        yield* first.resume
        yield* isThrough(first)
        yield* consistentRounds
        assert.deepStrictEqual(told(facts.facts), [
          ["attempt-failed", 1, "w1"],
          ["dead-lettered", 1, "w2"]
        ])
        yield* noRecords
        assert.lengthOf(hook.requests, 1)
      }),
    { moveDedupe: 200 }
  )
})
