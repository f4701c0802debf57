import { readFileSync } from "node:fs"
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Stream } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { readStream, storedAt } from "../../src/broker/scan.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { planId } from "../../src/history/plans.ts"
import { endpoint, history, nth, publish, publishMany, quickRetry } from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { receiver } from "../kit/receiver.ts"
import { outage } from "../kit/scenario.ts"
import { endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 600_000 })

/** The most memory that a process has had so far, MiB. */
const peak = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024

const count = 1_000_000
const waiting = 10

/** Stores events that nobody wants. */
const storeEvents = Effect.gen(function* () {
  const { names, publisher } = yield* natsClients
  yield* Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) =>
      publisher.publish(names.subjects.event("acme", "nobody"), "", [["Nats-Msg-Id", `e${n}`]]),
    { concurrency: 1_000, discard: true }
  )
})

/** Acknowledges all events but the first, in the name of the router; those that come again, again. */
const acknowledgeLater = Effect.gen(function* () {
  const { ask, js, jsm, names } = yield* natsClients
  const router = yield* ask("be the router", () =>
    js.consumers.get(names.events, names.routerConsumer)
  )
  const batch = { max_messages: 5_000, expires: 1_000 }
  const acknowledgeSome = ask("acknowledge", async () => {
    for await (const event of await router.fetch(batch)) if (event.seq !== 1) event.ack()
    return jsm.consumers.info(names.events, names.routerConsumer)
  })
  yield* acknowledgeSome.pipe(
    Effect.repeat({
      until: ({ num_ack_pending, num_pending }) => num_pending === 0 && num_ack_pending === 1
    })
  )
})

/** Stores the plans of all events but the first, each for nobody. */
const storePlans = Effect.gen(function* () {
  const { names, publisher } = yield* natsClients
  const now = yield* Clock.currentTimeMillis
  const events = yield* readStream({
    stream: names.events,
    subjects: [names.subjects.event("acme", "nobody")],
    headersOnly: true
  }).pipe(
    Stream.map((message) => ({ eventSeq: message.seq, eventAt: storedAt(message) })),
    Stream.runCollect
  )
  const plan = { part: 0, last: true, endpoints: [], skipped: [] }
  yield* Effect.forEach(
    events,
    (event) => {
      const fact: Fact = {
        ...{ v: 1, kind: "routed", at: now, tenant: "acme", endpoint: "_", type: "nobody" },
        ...{ ...event, plan }
      }
      return publisher.publish(
        names.subjects.fact("acme", "_", "ok", "routed"),
        JSON.stringify(fact),
        [["Nats-Msg-Id", planId(event, 0)]]
      )
    },
    { concurrency: 1_000, discard: true }
  )
})

describe.runIf(process.platform === "linux")("an event that a hanging receiver holds", () => {
  outage(
    "keeps neither a start nor its memory waiting, however much was planned since",
    (place) =>
      Effect.gen(function* () {
        const hanging = yield* gate
        const quick = yield* receiver()
        // Their deadlines are beyond the time that storing a million events takes on any machine.
        yield* endpoint({
          ...{ id: "hanging", url: hanging.url, types: ["held"], timeout: "10 minutes" },
          retry: quickRetry({ window: "1 hour" })
        })
        yield* endpoint({
          ...{ id: "quick", url: quick.url, types: ["invoice.paid"] },
          retry: quickRetry({ window: "1 hour" })
        })
        const facts = yield* history
        const first = yield* workerProcess(place, { id: "first" })
        yield* first.delivering
        yield* publish("held")
        yield* hanging.received(1)
        yield* facts.planned(1)
        const usual = peak(first.pid)
        yield* first.kill9
        yield* endLeases
        yield* storeEvents
        yield* acknowledgeLater
        // Stored before the plans, so that any of these might be theirs.
        yield* publishMany(waiting)
        yield* storePlans
        const began = performance.now()
        const second = yield* workerProcess(place, { id: "second", heap: 64 })
        yield* quick.received(1)
        const took = performance.now() - began
        yield* quick.received(waiting)
        // It comes again, and its plan is found at the other end of all these.
        yield* hanging.received(2)
        assert.isBelow(took, 10_000)
        assert.isBelow(peak(second.pid), usual + 64)
        yield* hanging.open
        yield* facts.count("delivered", waiting + 1)
        assert.lengthOf(
          facts.plans().filter(({ eventSeq }) => eventSeq === 1),
          1
        )
        assert.strictEqual(nth(facts.of("delivered"), waiting).endpoint, "hanging")
        yield* second.kill9
        yield* endLeases
      }),
    { ackWait: 3_000 }
  )
})
