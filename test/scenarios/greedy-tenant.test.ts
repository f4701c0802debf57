import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { vi } from "vitest"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { showEndpoint } from "../../src/operations/endpoints/endpoint-queries.ts"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import { endpoint, history, lateRetry, publishTo, worker, workersApart } from "../kit/engine.ts"
import { fewOf } from "../kit/long.ts"
import { about } from "../kit/outcomes.ts"
import { deafServer, latency, receiver, tcpServer } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

/** Takes requests, and never answers. */
const silent = Effect.suspend(() => tcpServer((socket) => socket.resume()))

/** Answers with a body of a byte a second that never ends. */
const dripping = Effect.suspend(() =>
  tcpServer((socket) => {
    const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    socket.once("data", () => socket.write(head))
    const timer = setInterval(() => socket.write("1\r\na\r\n"), 1_000)
    socket.on("close", () => clearInterval(timer))
  })
)

/** Answers every other request at once and never the others: its average is that of a quick one. */
const halfSilent = Effect.suspend(() => {
  let requests = 0
  return tcpServer((socket) =>
    socket.on("data", () => {
      if (requests++ % 2 === 0) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    })
  )
})

/** Requests that the worker may have in flight. */
const maxInFlight = 64
/** Longer than a request may take to count as quick, ms. */
const slowAnswerMs = 1_200

const publishAll = (count: number, subject: string) =>
  Effect.forEach(Array.from({ length: count }), () => publishTo(subject), {
    concurrency: 32,
    discard: true
  })

/** Adds endpoints of globex, all at one host and each with requests that may take an hour. */
const greedyEndpoints = (count: number, host: string, each = maxInFlight) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => `e${n}`),
    (id) =>
      endpoint({
        ...{ tenant: "globex", id, url: `http://${host}`, maxInFlight: each },
        ...{ timeout: "1 hour", connectTimeout: "1 hour", retry: lateRetry }
      })
  )

/** Adds a slow receiver and a quick one of acme. */
const otherTenant = Effect.gen(function* () {
  const slow = yield* receiver({
    answer: () => latency(slowAnswerMs)
  })
  const quick = yield* receiver()
  yield* endpoint({ id: "slow", url: slow.url, types: ["slow"] })
  yield* endpoint({ id: "quick", url: quick.url, types: ["quick"] })
  return { slow, quick }
})

describe.concurrent("a tenant that tries to use up what a worker has", () => {
  const attacks = [
    ["receivers that are silent", 6, silent],
    ["more endpoints than the worker has places, all silent", 100, silent],
    ["receivers that answer a byte a second", 6, dripping],
    ["receivers that never accept a connection", 6, deafServer],
    ["receivers that answer every other request only", 6, halfSilent]
  ] as const
  for (const [name, endpoints, host] of fewOf(attacks, 2))
    scenario(`with ${name} leaves another tenant its part, for slow receivers and quick ones`, () =>
      Effect.gen(function* () {
        yield* greedyEndpoints(endpoints, (yield* host).host)
        const { quick, slow } = yield* otherTenant
        const facts = yield* history
        yield* worker({ maxInFlight })
        yield* publishAll(Math.ceil(600 / endpoints), "globex.a")
        // Whatever the first of them began with, its requests count as slow by now.
        yield* Effect.sleep(2 * slowAnswerMs)
        yield* publishAll(Math.ceil(600 / endpoints), "globex.a")
        yield* publishAll(30, "acme.slow")
        yield* publishAll(100, "acme.quick")
        yield* slow.received(30)
        yield* quick.received(100)
        yield* facts.until((all) => about(all, "slow").length + about(all, "quick").length >= 130)
        assert.lengthOf(
          facts.of("delivered").filter(({ tenant }) => tenant === "acme"),
          130
        )
      })
    )
})

describe.concurrent("a tenant with an event for very many silent endpoints", () => {
  scenario(
    "holds up what others have in the same queue for a moment, not a second for each few of its own",
    () =>
      Effect.gen(function* () {
        yield* greedyEndpoints(1_500, (yield* silent).host, 1)
        const failingOnce = yield* receiver({ answer: byAttempt(500, 200) })
        yield* endpoint({ url: failingOnce.url })
        const facts = yield* history
        yield* workersApart()
        yield* publishTo("globex.a")
        yield* facts.count("routed", 1)
        // A queue holds 128 messages for a worker, each for a second at most: twelve seconds.
        const began = performance.now()
        yield* publishTo("acme.a")
        yield* facts.until((all) => about(all, "hook").some(({ kind }) => kind === "delivered"))
        assert.isBelow(performance.now() - began, 8_000)
      }),
    { partitions: 1 }
  )
})

describe.concurrent("a time-out of a year", () => {
  scenario("that is stored is cut to what an operator allows, and so is told", () =>
    Effect.gen(function* () {
      const host = yield* silent
      yield* setTenant(undefined, { maxTimeout: "2 minutes" }, "ana")
      yield* setTenant("globex", { maxTimeout: "1 second" }, "ana")
      const year = { timeout: "366 days", connectTimeout: "366 days" } as const
      yield* endpoint({ tenant: "globex", url: `http://${host.host}`, retry: lateRetry, ...year })
      const facts = yield* history
      yield* worker()
      yield* publishTo("globex.a")
      yield* facts.count("attempt-failed", 1)
      yield* host.quiet
      const [failed] = facts.of("attempt-failed")
      assert.deepStrictEqual(failed?.error, {
        class: "timeout",
        message: "no answer within 1 s"
      })
      const { timeout, timeoutsCutTo } = yield* showEndpoint({ tenant: "globex", id: "hook" })
      assert.deepStrictEqual([timeout, timeoutsCutTo], [Duration.days(366), Duration.seconds(1)])
    })
  )
})

describe.concurrent("requests in flight", () => {
  scenario("hold up a partition that passes to another worker no longer than a stop", () =>
    Effect.gen(function* () {
      const host = yield* silent
      yield* greedyEndpoints(10, host.host, 1)
      const facts = yield* history
      yield* worker({ stopWithin: 1_000 })
      yield* publishTo("globex.a")
      yield* host.connected(10)
      // Waits until it delivers in its share of the partitions: in both there are such requests.
      const second = yield* worker({ id: "w2" })
      assert.lengthOf(yield* second.delivering, 1)
      assert.deepStrictEqual(facts.of("attempt-failed"), [])
    })
  )

  scenario("of an endpoint that is removed are interrupted, and told so", () =>
    Effect.gen(function* () {
      const host = yield* silent
      yield* greedyEndpoints(2, host.host, 3)
      const facts = yield* history
      yield* worker()
      yield* publishAll(3, "globex.a")
      yield* host.connected(6)
      for (const id of ["e0", "e1"]) yield* removeEndpoint("globex", id, "ana")
      yield* host.quiet
      yield* facts.count("dead-lettered", 6)
      for (const { error } of facts.of("attempt-failed"))
        assert.deepStrictEqual(error, {
          class: "interrupted",
          message: "the endpoint was removed"
        })
      for (const { reason } of facts.of("dead-lettered"))
        assert.strictEqual(reason, "endpoint-removed")
    })
  )
})
