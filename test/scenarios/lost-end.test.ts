import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { isClean, quiet, storedWatermark } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  lateRetry,
  publish,
  publishMany,
  queued,
  waitingMessages,
  worker,
  workersApart
} from "../kit/engine.ts"
import { attempts } from "../kit/outcomes.ts"
import { powerCut } from "../kit/power-cut.ts"
import type { Answer } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { throughBacklog } from "../kit/through-backlog.ts"
import { crashAt } from "../kit/worker-process.ts"

const hook = { tenant: "acme", endpoint: "hook" }

describe.concurrent("a broker that loses the end of the events, and not of the history,", () => {
  for (const keepsConsumers of [false, true])
    outage(
      `takes the next event for another one${keepsConsumers ? ", though its consumer had come further" : ""}`,
      (_, server) =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          const orders = yield* receiver()
          const salaries = yield* receiver()
          yield* endpoint({ id: "a", url: orders.url, types: ["order.>"] })
          yield* endpoint({ id: "b", url: orders.url, types: ["order.>"] })
          yield* endpoint({ id: "c", url: salaries.url, types: ["salary.>"] })
          const facts = yield* history
          const power = powerCut(server, [names.events], { keepsConsumers })
          yield* worker()
          yield* publish("order.created")
          yield* facts.count("delivered", 2)
          yield* power.remember
          const lost = yield* publish("order.created")
          yield* facts.count("delivered", 4)
          yield* power.cut
          const next = yield* publish("salary.changed")
          assert.strictEqual(next.seq, lost.seq)
          yield* salaries.received(1)
          yield* facts.count("delivered", 5)
          assert.lengthOf(orders.requests, 4)
          // Both events are called by their sequence, and receivers must tell them apart.
          const ids = [...orders.requests, ...salaries.requests].map(
            ({ headers }) => headers["webhook-id"]
          )
          assert.strictEqual(new Set(ids).size, 3)
          const { judgement } = yield* audit({})
          assert.deepStrictEqual(
            judgement.problems.list.map(({ eventSeq, kind }) => [kind, eventSeq]),
            [["event-replaced", lost.seq]]
          )
          assert.deepInclude(judgement.tally, { delivered: 3, pending: 0, missing: 0 })
        })
    )
})

describe.concurrent("what is in hand when a broker loses it", () => {
  for (const way of ["event", "queue"] as const)
    outage(
      `does not let go of another message that has its sequence since, ${way === "event" ? "of the events" : "of a queue"}`,
      (_, server) =>
        Effect.gen(function* () {
          const { ask, jsm, names } = yield* natsClients
          let answer = () => {}
          const answered = new Promise<Answer>((resolve) => {
            answer = () => resolve({})
          })
          const held = yield* receiver({ answer: () => answered })
          const next = yield* receiver()
          yield* endpoint({ id: "held", url: held.url, types: ["held"] })
          yield* endpoint({ id: "next", url: next.url, types: ["next"] })
          const partition = partitionOf("acme", "held", 1)
          const stream = way === "event" ? names.events : names.deliveries(partition)
          const facts = yield* history
          const power = powerCut(server, [stream])
          yield* way === "event" ? worker() : workersApart()
          yield* power.remember
          yield* publish("held")
          yield* held.received(1)
          yield* power.cut
          yield* publish("next")
          const consumer = way === "event" ? names.routerConsumer : names.deliverConsumer
          yield* eventually(
            ask("look at the consumer", () => jsm.consumers.info(stream, consumer)),
            // Two where the broker had not yet stored that "held" was routed, and it is routed again.
            ({ delivered }) => delivered.stream_seq >= 1
          )
          answer()
          yield* next.received(1)
          yield* facts.count("delivered", 2)
          yield* quiet
          assert.lengthOf(next.requests, 1)
        }),
      { partitions: 1 }
    )
})

describe.concurrent("a broker that loses the end of a backlog", () => {
  outage(
    "lets each delivery wait that comes there, though it gives a sequence again",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const failing = yield* receiver({ answer: { status: 500 } })
        yield* endpoint({ url: failing.url, retry: lateRetry })
        const partition = partitionOf("acme", "hook", 2)
        const facts = yield* history
        const power = powerCut(server, [names.backlog(partition)])
        const schedules = queued(partition, names.subjects.schedulesOf(partition))
        yield* worker()
        yield* power.remember
        const wave = Effect.fnUntraced(function* (count: number) {
          yield* throughBacklog(`wave-${count}`, 1)
          yield* facts.count("attempt-failed", count)
          yield* eventually(backlogged, (waiting) => waiting === 0)
        })
        yield* wave(1)
        yield* power.cut
        yield* wave(2)
        yield* eventually(schedules, (waiting) => waiting.length === 2)
        assert.deepStrictEqual(attempts(failing), [1, 1])
      })
  )
})

/** The floors of both partitions. */
const floors = Effect.forEach([0, 1], storedWatermark)

const lastFact = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { state } = yield* ask("look at the history", () => jsm.streams.info(names.history))
  return state.last_seq
})

describe.concurrent("a broker that loses the end of the history", () => {
  outage(
    "lets nothing be sent again that it tells of, though the floors lie beyond it",
    (place, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const { received, requests, url } = yield* receiver()
        yield* endpoint({ url })
        const power = powerCut(server, [names.history])
        yield* power.remember
        const first = yield* worker({ id: "first" })
        yield* publishMany(10)
        yield* received(10)
        yield* eventually(floors, (both) => both.every((floor) => floor >= 10))
        yield* first.stop
        yield* power.cut
        yield* worker({ id: "routes", roles: ["router"] })
        yield* publish("invoice.paid")
        yield* crashAt(place, "outcome-stored", 1, { roles: ["deliver"] })
        assert.isBelow(yield* lastFact, 10)
        yield* worker({ id: "second", roles: ["deliver"] })
        yield* quiet
        assert.lengthOf(requests, 11)
      }),
    { ackWait: 300 }
  )

  outage(
    "gets floors again that do not reach beyond its end, from an owner that goes on",
    (_, server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const { received, url } = yield* receiver()
        yield* endpoint({ url })
        const power = powerCut(server, [names.history])
        yield* power.remember
        yield* worker()
        yield* publishMany(10)
        yield* received(10)
        yield* eventually(floors, (both) => both.every((floor) => floor >= 10))
        yield* power.cut
        yield* publish("invoice.paid")
        yield* received(11)
        assert.isBelow(yield* eventually(lastFact, (seq) => seq > 0), 10)
        yield* eventually(Effect.all([lastFact, floors]), ([last, both]) =>
          both.every((floor) => floor === last)
        )
      }),
    { ackWait: 300 }
  )
})

describe.concurrent("a broker that loses the end of several streams", () => {
  outage("delivers once what is in its queue again, and not in the backlog", (_, server) =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const partition = partitionOf("acme", "hook", 2)
      const streams = [names.deliveries(partition), names.backlog(partition)]
      const { requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const power = powerCut(server, streams, { downFor: 2_500 })
      yield* worker({ id: "routes", roles: ["router"] })
      yield* pauseEndpoint(hook, undefined, "test")
      yield* publish("invoice.paid")
      yield* eventually(waitingMessages, (waiting) => waiting === 1)
      yield* power.remember
      yield* worker({ roles: ["deliver"] })
      yield* eventually(
        Effect.all([backlogged, waitingMessages]),
        ([kept, all]) => kept === 1 && all === 1
      )
      yield* power.cut
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("delivered", 1)
      yield* quiet
      assert.lengthOf(requests, 1)
      assert.deepInclude(yield* isClean, { delivered: 1, missing: 0 })
    })
  )

  for (const way of ["event", "queue"] as const)
    outage(
      `tells again of what was delivered before, ${way === "event" ? "from its event" : "from its queue"}`,
      (_, server) =>
        Effect.gen(function* () {
          const { names } = yield* Broker
          const partition = partitionOf("acme", "hook", 2)
          const places = [names.deliveries(partition), names.backlog(partition)]
          const streams = [names.events, names.history, ...places]
          const { received, url } = yield* receiver()
          yield* endpoint({ url })
          yield* publish("invoice.paid")
          const power = powerCut(server, streams, { downFor: 2_500 })
          yield* power.remember
          yield* way === "event" ? worker() : workersApart()
          yield* received(1)
          yield* quiet
          yield* power.cut
          yield* eventually(lastFact, (seq) => seq >= 2)
          yield* quiet
          assert.deepInclude(yield* isClean, { delivered: 1, missing: 0 })
        })
    )
})
