import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { writeValue } from "../../src/broker/values.ts"
import type { Heartbeat } from "../../src/cluster/roster.ts"
import { WorkerMetrics } from "../../src/metrics/worker-metrics.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { listWorkers } from "../../src/operations/status/workers.ts"
import { shareOut } from "../../src/policy/rendezvous.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { isClean, quiet } from "../kit/consistency.ts"
import { deliveryCount } from "../kit/consumers.ts"
import {
  endpoint,
  eventually,
  history,
  nth,
  publish,
  startedWorker,
  worker
} from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { makeLog } from "../kit/log.ts"
import { eight, owners } from "../kit/owners.ts"
import { receiver } from "../kit/receiver.ts"
import { rival } from "../kit/rival.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const handsOver = "hands a partition over to another worker"

/** The heartbeat of a worker that has joined and is not ready for partitions. */
const unready: Heartbeat = {
  ...{ v: 1, id: "w2", instance: "starting", roles: ["router", "deliver"] },
  ...{ host: "another", pid: 1, startedAt: 0, partitions: [] }
}

/** A broker that loses all acknowledgements of deliveries in queues, once the loss has begun. */
const losingAcks = alteredBroker(({ names, pull }) => ({
  pull: (options) =>
    pull({
      ...options,
      take: (message, header) => {
        const isLost = options.consumer === names.deliverConsumer
        options.take(isLost ? Object.assign(message, { ack: () => undefined }) : message, header)
      }
    })
}))

/** A broker that counts how often a new owner reads the history. */
const countingReads = (counts: { reads: number }) =>
  alteredBroker(({ names, read }) => ({
    read: (range, from) => {
      const isTakeover = range.subjects.includes(names.subjects.fact("*", "*", "ok", "delivered"))
      if (range.stream === names.history && isTakeover) counts.reads++
      return read(range, from)
    }
  }))

/** A broker whose user may not hear who asks for partitions, as that of an older version. */
const deafToAskers = alteredBroker(({ listen, names }) => ({
  listen: (subject, callback) =>
    subject.startsWith(names.subjects.handOver("")) ? () => undefined : listen(subject, callback)
}))

/** How many partitions a worker came to, by how. */
const movesOf = (metrics: WorkerMetrics) => {
  const family = metrics.families().find(({ name }) => name === "petrel.partition.move.duration")
  assert(family?.type === "histogram")
  return family.samples.map(({ counts }) => Array.from(counts).reduce((sum, one) => sum + one))
}

describe.concurrent("a partition that moves between live workers", () => {
  scenario(
    "stays, and this is said, where its owner does not hear who asks for it",
    () =>
      Effect.gen(function* () {
        const options = { leaseTtl: 1_000 }
        const log = makeLog()
        const metrics = new WorkerMetrics()
        const deaf = worker({ ...options, id: "w1", metrics })
        const first = yield* Effect.provideService(deaf, Broker, yield* deafToAskers)
        yield* first.delivering
        const second = yield* Effect.provide(startedWorker({ ...options, id: "w2" }), log.layer)
        assert.include(second.problems(), "the worker has not begun to deliver")
        const share = shareOut(4, ["w1", "w2"]).flatMap((id, at) => (id === "w2" ? [at] : []))
        const { workers } = yield* eventually(listWorkers, ({ workers }) =>
          workers.some(({ withheld }) => withheld?.length === share.length)
        )
        assert.deepStrictEqual(
          workers.flatMap(({ withheld }) => withheld ?? []),
          share.map((partition) => ({ partition, owner: "w1" }))
        )
        yield* eventually(readStatus, ({ notices }) =>
          notices.some(
            ({ code, text }) =>
              code === "hand-over-unanswered" &&
              /^worker w2 gets no answer when it asks w1 for partitions .* has just died, .* older version/.test(
                text
              )
          )
        )
        yield* eventually(
          Effect.sync(() => log.count("a worker does not hand a partition over")),
          (count) => count >= 1
        )
        assert.deepStrictEqual(movesOf(metrics), [0, 4])
        // Otherwise a first worker that ends once another is ready would never end.
        assert.deepStrictEqual(second.problems(), [])
        yield* first.stop
        yield* eventually(listWorkers, ({ workers }) =>
          workers.every(
            ({ partitions, withheld }) => withheld === undefined && partitions.length === 4
          )
        )
      }),
    { partitions: 4 }
  )

  scenario(
    "stays where it is while the worker that is to have it does not ask",
    () =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const hook = yield* receiver()
        yield* Effect.forEach(eight, (id) => endpoint({ id, url: `${hook.url}/${id}` }))
        const facts = yield* history
        const log = makeLog()
        const first = yield* Effect.provide(worker({ id: "w1" }), log.layer)
        yield* first.delivering
        yield* writeValue(names.buckets.workers, "worker.w2", JSON.stringify(unready), {
          ttl: 60_000
        })
        yield* eventually(listWorkers, ({ workers }) => workers.length === 2)
        for (let round = 1; round <= 3; round++) {
          yield* publish("a")
          yield* facts.count("delivered", 8 * round)
        }
        assert.deepStrictEqual(new Set(yield* owners(8)), new Set(["w1"]))
        assert.strictEqual(log.count(handsOver), 0)
        // A stop does not wait for long for somebody who does not ask.
        yield* first.stop
        assert.deepStrictEqual(new Set(yield* owners(8)), new Set([undefined]))
      }),
    { partitions: 8 }
  )

  scenario(
    "moves once where several workers join at the same time",
    () =>
      Effect.gen(function* () {
        const log = makeLog()
        // The longer the leases last, the more time others have to come.
        const options = { leaseTtl: 40_000 }
        const first = yield* Effect.provide(worker({ ...options, id: "w1" }), log.layer)
        yield* first.delivering
        for (const id of ["w2", "w3"])
          yield* Effect.provide(startedWorker({ ...options, id }), log.layer)
        yield* eventually(listWorkers, ({ workers }) => workers.length === 3)
        assert.strictEqual(log.count(handsOver), 0)
        const share = shareOut(8, ["w1", "w2", "w3"])
        yield* eventually(owners(8), (all) => all.join() === share.join())
        assert.strictEqual(log.count(handsOver), share.filter((id) => id !== "w1").length)
      }),
    { partitions: 8 }
  )

  scenario(
    "waits for its slowest request, and no other partition waits with it",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        const share = shareOut(8, ["w1", "w2"]).flatMap((id, index) => (id === "w2" ? [index] : []))
        const slow = yield* gate
        const held = nth(eight, nth(share, 0))
        yield* Effect.forEach(eight, (id) =>
          endpoint({ id, url: id === held ? slow.url : `${hook.url}/${id}` })
        )
        const facts = yield* history
        const log = makeLog()
        const first = yield* Effect.provide(worker({ id: "w1" }), log.layer)
        yield* first.delivering
        yield* publish("a")
        yield* slow.received(1)
        yield* facts.count("delivered", 7)
        const joining = yield* Effect.forkScoped(worker({ id: "w2" }))
        yield* eventually(
          Effect.sync(() => log.count(handsOver)),
          (count) => count === 1
        )
        for (let round = 2; round <= 6; round++) {
          yield* publish("a")
          yield* facts.count("delivered", 7 * round)
        }
        // One of eight partitions moves at a time.
        assert.strictEqual(log.count(handsOver), 1)
        assert.deepStrictEqual(new Set(yield* owners(8)), new Set(["w1"]))
        yield* slow.open
        const second = yield* Fiber.join(joining)
        assert.deepStrictEqual(yield* second.delivering, share)
        yield* facts.count("delivered", 8 * 6)
        assert.strictEqual(log.count(handsOver), share.length)
        yield* quiet
        assert.lengthOf(slow.requests, 6)
        assert.deepInclude(yield* isClean, { delivered: 48, repeated: 0 })
      }),
    { partitions: 8 }
  )

  for (const origin of ["its queue", "its event"] as const)
    scenario(
      `is known to its next owner without the history: what ended is not sent again, from ${origin}`,
      () =>
        Effect.gen(function* () {
          const hook = yield* gate
          yield* endpoint({ url: hook.url })
          const facts = yield* history
          if (origin === "its queue") yield* worker({ id: "routes", roles: ["router"] })
          const first = yield* worker({
            id: "first",
            roles: origin === "its queue" ? ["deliver"] : ["router", "deliver"]
          }).pipe(Effect.provideService(Broker, yield* losingAcks))
          yield* first.delivering
          yield* publish("invoice.paid")
          yield* hook.received(1)
          // Another router queues what is already attempted.
          if (origin === "its event") yield* rival
          yield* hook.open
          yield* facts.count("delivered", 1)
          yield* eventually(deliveryCount, (count) => count > 1)
          const counts = { reads: 0 }
          const metrics = new WorkerMetrics()
          const second = yield* worker({ id: "second", roles: ["deliver"], metrics }).pipe(
            Effect.provideService(Broker, yield* countingReads(counts))
          )
          yield* second.delivering
          yield* first.stop
          yield* eventually(owners(2), (all) => all.every((owner) => owner === "second"))
          yield* quiet
          assert.deepStrictEqual(movesOf(metrics), [2, 0])
          assert.strictEqual(counts.reads, 0)
          assert.lengthOf(hook.requests, 1)
          assert.deepInclude(yield* isClean, { delivered: 1, repeated: 0 })
        }),
      { ackWait: 300 }
    )
})
