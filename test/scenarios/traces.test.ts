import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import {
  exportTraces,
  readTracePosition,
  storeTracePosition
} from "../../src/operations/traces/export-traces.ts"
import { attribute, type Collector, type OtlpSpan, spanCollector } from "../kit/collector.ts"
import {
  endpoint,
  erasableHistory,
  eventually,
  history,
  nth,
  publish,
  worker
} from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const publisher = "00f067aa0ba902b7"
const traceparent = `00-${traceId}-${publisher}-01`
const unsampled = `00-${traceId}-${publisher}-00`

const start = (collector: Collector, name = "one") =>
  exportTraces({
    ...{ name, url: `${collector.url}/v1/traces`, headers: {}, version: "1" },
    ...{ retryMs: 20, timeoutMs: 2_000 }
  })

/** Starts an export in a scope of its own. Returns what ends it, as a console that stops. */
const startStoppable = Effect.fnUntraced(function* (collector: Collector, name?: string) {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
  yield* Scope.provide(start(collector, name), scope)
  return Scope.close(scope, Exit.void)
})

/** Waits until it is known from where on spans are exported. */
const begun = eventually(readTracePosition, ({ position }) => position !== undefined)

/** Waits until the position is at the end of the history: nothing is exported again from there. */
const caughtUp = eventually(
  Effect.gen(function* () {
    const { names, streamInfo } = yield* Broker
    const { state } = yield* streamInfo("look", names.history)
    return state.last_seq - ((yield* readTracePosition).position?.seq ?? 0)
  }),
  (behind) => behind === 0
)

/** Publishes sampled events. */
const publishTraced = (count: number) =>
  Effect.forEach(Array.from({ length: count }), () => publish("paid", "{}", { traceparent }), {
    discard: true
  })

const idsOf = (spans: ReadonlyArray<OtlpSpan>) => spans.map(({ spanId }) => spanId)

describe.concurrent("a sampled trace", () => {
  scenario("leads from the publisher over routing and attempts to the receiver", () =>
    Effect.gen(function* () {
      const { received, requests, url } = yield* receiver({ answer: byAttempt(503, 200) })
      yield* endpoint({ url: `${url}/hooks?key=secret` })
      const collector = yield* spanCollector()
      yield* start(collector)
      yield* begun
      yield* worker({ traces: true })
      yield* publish("paid", "1", { traceparent: unsampled })
      yield* publish("paid", "2")
      yield* received(4)
      yield* publish("paid", "3", { traceparent, tracestate: "vendor=x" })
      yield* received(6)
      const spans = yield* collector.different(3)
      assert.lengthOf(spans, 3)
      const attempts = spans.filter(({ name }) => name === "POST")
      const [first, second] = [nth(attempts, 0), nth(attempts, 1)]
      const routing = nth(
        spans.filter(({ name }) => name === "route"),
        0
      )
      assert.strictEqual(routing.parentSpanId, publisher)
      assert.strictEqual(first.parentSpanId, routing.spanId)
      assert.strictEqual(second.parentSpanId, routing.spanId)
      const headersOf = (body: string) =>
        requests.filter((request) => String(request.body) === body).map(({ headers }) => headers)
      assert.deepStrictEqual(
        headersOf("3").map((headers) => [headers.traceparent, headers.tracestate]),
        [
          [`00-${traceId}-${first.spanId}-01`, "vendor=x"],
          [`00-${traceId}-${second.spanId}-01`, "vendor=x"]
        ]
      )
      assert.isUndefined(attribute(first, "http.request.resend_count"))
      assert.strictEqual(attribute(first, "error.type"), "503")
      assert.strictEqual(attribute(second, "http.request.resend_count"), "1")
      assert.strictEqual(attribute(second, "url.full"), `${url}/REDACTED`)
      for (const { traceparent } of headersOf("1")) assert.strictEqual(traceparent, unsampled)
      for (const { traceparent } of headersOf("2")) assert.isUndefined(traceparent)
    })
  )

  scenario("is exported once by two consoles, and by the other when one has ended", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url })
      const collector = yield* spanCollector()
      const stopOne = yield* startStoppable(collector, "one")
      yield* begun
      const stopTwo = yield* startStoppable(collector, "two")
      yield* worker()
      yield* publishTraced(10)
      yield* collector.different(20)
      yield* caughtUp
      yield* stopOne
      yield* publishTraced(5)
      yield* collector.different(30)
      yield* caughtUp
      yield* stopTwo
      // Nobody exports now: what happens is in the history.
      const facts = yield* history
      yield* publishTraced(5)
      yield* facts.count("delivered", 20)
      assert.lengthOf(collector.spans(), 30)
      yield* start(collector, "three")
      const ids = idsOf(yield* collector.different(40))
      assert.lengthOf(ids, 40)
      assert.strictEqual(new Set(ids).size, 40)
    })
  )

  scenario("waits in the history while the collector takes nothing", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url })
      const collector = yield* spanCollector({ status: 500 })
      yield* start(collector)
      yield* begun
      yield* worker()
      yield* publishTraced(10)
      yield* collector.received(5)
      const { position } = yield* readTracePosition
      yield* publishTraced(10)
      yield* collector.received(10)
      assert.deepStrictEqual((yield* readTracePosition).position, position)
      collector.answer({ body: "{}" })
      yield* collector.different(40)
      yield* eventually(
        Effect.sync(() => log.count("are pushed again")),
        (count) => count > 0
      )
      assert.strictEqual(log.count("spans cannot be pushed; they wait in the history"), 1)
      assert.strictEqual(log.count("spans are pushed again"), 1)
    }).pipe(Effect.provide(log.layer))
  })

  scenario("says what the history has lost of it, or that it is another history", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      yield* erasableHistory
      const { url } = yield* receiver()
      yield* endpoint({ url })
      const collector = yield* spanCollector()
      const stop = yield* startStoppable(collector)
      yield* begun
      const facts = yield* history
      yield* worker()
      yield* publishTraced(1)
      yield* collector.different(2)
      yield* caughtUp
      yield* stop
      yield* publishTraced(3)
      yield* facts.count("delivered", 4)
      const { ask, jsm, names } = yield* natsClients
      yield* ask("purge", () => jsm.streams.purge(names.history))
      const stopSecond = yield* startStoppable(collector)
      yield* eventually(
        Effect.sync(() => log.count("the history has removed 3 facts before")),
        (count) => count > 0
      )
      yield* publishTraced(1)
      yield* collector.different(4)
      yield* stopSecond
      const { position, revision } = yield* readTracePosition
      yield* storeTracePosition({ seq: (position?.seq ?? 0) + 1_000, nanoseconds: "" }, revision)
      yield* start(collector)
      yield* eventually(
        Effect.sync(() => log.count("this history is not the one")),
        (count) => count > 0
      )
      yield* publishTraced(1)
      yield* collector.different(6)
      assert.strictEqual(log.count("the history has removed"), 1)
    }).pipe(Effect.provide(log.layer))
  })
})
