import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import type { WaitingFilter } from "../../src/domain/retry-record.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/operations/endpoints/change-state.ts"
import { retryDelivery, retryEndpointNow } from "../../src/operations/retries/retry-endpoint.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import {
  endpoint,
  eventually,
  history,
  lateRetry,
  nth,
  publish,
  publishMany,
  queued,
  worker
} from "../kit/engine.ts"
import { change } from "../kit/live-endpoints.ts"
import { latency, receiver, type Script } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const hook = { tenant: "acme", id: "hook" }
const everything = (ignoreRetryAfter = false) =>
  retryEndpointNow(hook, { ignoreRetryAfter }, "test")

/** Waits until as many deliveries wait: what has failed may be on its way there. */
const atRest = (count: number) =>
  eventually(
    retryEndpointNow(hook, { dryRun: true }, "test"),
    ({ inBacklog, moved }) => moved + inBacklog === count
  )

/** Opens after 3 failures, and is not probed before the end of any test. */
const circuit = { failures: 3, coolDown: "20 minutes", maxCoolDown: "20 minutes", successes: 1 }

describe.concurrent("what waits for its next attempt", () => {
  scenario("goes on when all of an endpoint is wanted now, under its cap", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 500 } })
      yield* endpoint({ url: to.url, retry: lateRetry, maxInFlight: 2 })
      const facts = yield* history
      yield* worker()
      for (let n = 0; n < 20; n++) yield* publish("a", String(n))
      yield* facts.count("attempt-failed", 20)
      to.answer({ status: 200 })
      yield* atRest(20)
      assert.strictEqual((yield* everything()).moved, 20)
      yield* facts.count("delivered", 20)
      assert.isAtMost(to.connections(), 2)
      assert.deepStrictEqual(
        new Set(facts.of("delivered").map(({ attempt }) => attempt)),
        new Set([2])
      )
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario("goes on where it waits as a schedule", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 500 } })
      yield* endpoint({ url: to.url, retry: lateRetry })
      const facts = yield* history
      yield* worker({ maxWaiting: 2 })
      for (let n = 0; n < 6; n++) yield* publish("a", String(n))
      yield* facts.count("attempt-failed", 6)
      to.answer({ status: 200 })
      yield* atRest(6)
      assert.strictEqual((yield* everything()).moved, 6)
      yield* facts.count("delivered", 6)
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario("goes on where it has failed, and is in line behind a slow request", () =>
    Effect.gen(function* () {
      const answer: Script = ({ body }) =>
        body.toString() === "slow" ? latency(400) : { status: 500 }
      const to = yield* receiver({ answer })
      yield* endpoint({ url: to.url, retry: lateRetry, maxInFlight: 1 })
      const facts = yield* history
      yield* worker()
      for (const body of ["0", "1", "slow"]) yield* publish("a", body)
      yield* facts.count("attempt-failed", 2)
      yield* to.received(3)
      to.answer({ status: 200 })
      const { inFlight, moved } = yield* everything()
      assert.deepStrictEqual({ inFlight, moved }, { inFlight: 0, moved: 2 })
      yield* facts.count("delivered", 3)
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario("goes on where a former owner decided that it waits", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 500 } })
      yield* endpoint({ url: to.url, retry: lateRetry, maxInFlight: 2 })
      const facts = yield* history
      const first = yield* worker()
      for (let n = 0; n < 20; n++) yield* publish("a", String(n))
      yield* facts.count("attempt-failed", 20)
      yield* atRest(20)
      yield* first.stop
      to.answer({ status: 200 })
      yield* worker({ id: "w2" })
      const { left, moved } = yield* everything()
      assert.deepStrictEqual({ left, moved }, { left: 0, moved: 20 })
      yield* facts.count("delivered", 20)
      assert.lengthOf(facts.of("attempt-failed"), 20)
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario("is attempted once more, however long the command takes, where all of it fails", () =>
    Effect.gen(function* () {
      const many = 600
      const to = yield* receiver({ answer: { status: 500 } })
      const circuit = { failures: 10 * many, rate: "none" } as const
      yield* endpoint({ url: to.url, retry: lateRetry, maxInFlight: 50, circuit })
      const facts = yield* history
      const { names } = yield* Broker
      yield* worker({ maxWaiting: many / 2 })
      yield* publishMany(many)
      yield* facts.count("attempt-failed", many)
      const waits = Effect.all([
        Effect.forEach([0, 1], (index) => queued(index, names.subjects.deliveriesOf(index))),
        Effect.forEach([0, 1], (index) => queued(index, names.subjects.schedulesOf(index)))
      ])
      // Half by NAK, half as schedules: both ways are scanned.
      yield* eventually(
        waits,
        (found) => found.flat(2).length === many && found[1].flat().length >= many / 3
      )
      const { inBacklog, inFlight, left, moved } = yield* everything()
      assert.deepStrictEqual(
        { all: moved + inFlight, inBacklog, left },
        { all: many, inBacklog: 0, left: 0 }
      )
      yield* facts.count("attempt-failed", many + moved)
      const attempts = facts.of("attempt-failed").map(({ attempt = 0 }) => attempt)
      assert.strictEqual(Math.max(...attempts), 2)
      assert.lengthOf(attempts, many + moved)
      assert.lengthOf(to.requests, many + moved)
    })
  )

  scenario("goes on as far as a filter means it, and not at all in a dry run", () =>
    Effect.gen(function* () {
      const to = yield* receiver({
        answer: ({ body }) => ({ status: body.toString() === "404" ? 404 : 500 })
      })
      yield* endpoint({ url: to.url, retry: lateRetry, circuit: { failures: 1_000 } })
      const facts = yield* history
      // Two wait by NAK, and the others as schedules.
      yield* worker({ maxWaiting: 2 })
      for (const type of ["a", "b", "a", "b"]) yield* publish(type, "500")
      for (const type of ["a", "b"]) yield* publish(type, "404")
      yield* facts.count("attempt-failed", 6)
      const retry = (filter: WaitingFilter, dryRun = false) =>
        Effect.map(
          retryEndpointNow(hook, { filter, dryRun }, "test"),
          ({ inFlight, moved }) => [moved, inFlight] as const
        )
      // The last failure is on its way to where it waits.
      const planned = (filter: WaitingFilter, count: number) =>
        eventually(retry(filter, true), ([moved]) => moved === count)
      yield* planned({}, 6)
      yield* planned({ status: "404" }, 2)
      yield* planned({ status: "5xx", types: ["b"] }, 2)
      yield* planned({ error: "timeout" }, 0)
      const between = nth(facts.of("attempt-failed"), 2).at
      const later = facts.of("attempt-failed").filter(({ at }) => at >= between).length
      yield* planned({ since: between }, later)
      assert.lengthOf(facts.of("attempt-failed"), 6)
      assert.deepStrictEqual(yield* retry({ status: "404", types: ["a"] }), [1, 0])
      yield* facts.count("attempt-failed", 7)
      const last = nth(facts.of("attempt-failed"), 6)
      assert.deepInclude(last, { attempt: 2, status: 404, type: "a" })
      yield* planned({ status: "404" }, 2)
      to.answer({ status: 200 })
      assert.deepStrictEqual(yield* retry({ status: "500" }), [4, 0])
      yield* facts.count("delivered", 4)
      yield* everything()
      yield* facts.count("delivered", 6)
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario("goes on alone when only it is wanted", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 500 } })
      yield* endpoint({ url: to.url, retry: lateRetry })
      const facts = yield* history
      yield* worker()
      yield* publish("a", "1", { "Nats-Msg-Id": "acme.one" })
      yield* publish("a", "2", { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("attempt-failed", 2)
      const again = yield* retryDelivery("acme.two.hook", undefined, {}, "test")
      assert.strictEqual(again.state, "moved")
      yield* facts.count("attempt-failed", 3)
      const last = nth(facts.of("attempt-failed"), 2)
      assert.deepInclude(last, { event: "acme.two", attempt: 2 })
      to.answer({ status: 200 })
      yield* retryDelivery("acme.two.hook", undefined, {}, "test")
      yield* facts.count("delivered", 1)
      assert.strictEqual(nth(facts.of("delivered"), 0).event, "acme.two")
      const over = yield* Effect.flip(retryDelivery("acme.two.hook", undefined, {}, "test"))
      assert.match(
        over.message,
        /has ended \(delivered\): .*petrel delivery resend acme\.two\.hook/
      )
      yield* everything()
      yield* facts.count("delivered", 2)
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario("is refused where nobody works, or somebody has paused it", () =>
    Effect.gen(function* () {
      yield* endpoint()
      assert.match((yield* Effect.flip(everything())).message, /no worker that owns partition/)
      yield* pauseEndpoint(hook, {}, "test")
      assert.match(
        (yield* Effect.flip(everything())).message,
        /is paused: .*petrel endpoint resume/
      )
    })
  )
})

describe.concurrent("what was to go on when its worker died", () => {
  scenario("is attempted once by the next one", (place) =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: byAttempt(500, 200) })
      yield* endpoint({ url: to.url, retry: lateRetry })
      const facts = yield* history
      const begin = Effect.gen(function* () {
        yield* publish("a")
        yield* facts.count("attempt-failed", 1)
        // It may still be on its way to where it waits.
        yield* eventually(Effect.result(everything()), ({ _tag }) => _tag === "Failure")
      })
      yield* crashAt(place, "moved", 1, {}, begin)
      yield* worker({ id: "next" })
      yield* facts.count("delivered", 1)
      yield* consistentRounds
      assert.lengthOf(to.requests, 2)
      yield* isClean
    })
  )
})

describe.concurrent("an endpoint whose circuit is open", () => {
  const failing = Effect.gen(function* () {
    const to = yield* receiver({ answer: { status: 500 } })
    yield* endpoint({ url: to.url, retry: lateRetry, circuit })
    const facts = yield* history
    yield* worker()
    for (let n = 0; n < 5; n++) yield* publish("a", String(n))
    yield* facts.count("circuit-opened", 1)
    yield* atRest(5)
    return { facts, to }
  })

  scenario("is probed when it is wanted now, and then gets what waits", () =>
    Effect.gen(function* () {
      const { facts, to } = yield* failing
      to.answer({ status: 200 })
      yield* everything()
      yield* facts.count("circuit-closed", 1)
      yield* facts.count("delivered", 5)
      yield* consistentRounds
    })
  )

  scenario("is probed at once at another address", () =>
    Effect.gen(function* () {
      const { facts } = yield* failing
      const other = yield* receiver()
      yield* change("hook", { url: other.url })
      yield* facts.count("circuit-half-opened", 1)
    })
  )

  scenario("is probed at once when it is resumed", () =>
    Effect.gen(function* () {
      const { facts } = yield* failing
      yield* pauseEndpoint(hook, {}, "test")
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("circuit-half-opened", 1)
    })
  )
})

describe.concurrent("a Retry-After", () => {
  const asked = Effect.gen(function* () {
    const answer = { status: 503, headers: { "retry-after": "1200" } }
    const to = yield* receiver({ answer })
    yield* endpoint({ url: to.url, retry: lateRetry })
    const facts = yield* history
    yield* worker()
    yield* publish("a")
    yield* facts.count("attempt-failed", 1)
    to.answer({ status: 200 })
    return { facts, to }
  })

  scenario("is respected, and said", () =>
    Effect.gen(function* () {
      const { to } = yield* asked
      const { pace } = yield* everything()
      assert.match(
        pace.join("\n"),
        /asked to wait until .* unless you ignore it .*retry-now acme\/hook --ignore-retry-after/
      )
      const ignoring = { ignoreRetryAfter: true, dryRun: true }
      const ignored = yield* retryEndpointNow(hook, ignoring, "test")
      assert.notMatch(ignored.pace.join("\n"), /asked to wait/)
      assert.lengthOf(to.requests, 1)
    })
  )

  scenario("is not waited for where that is asked", () =>
    Effect.gen(function* () {
      const { facts } = yield* asked
      yield* everything(true)
      yield* facts.count("delivered", 1)
      yield* consistentRounds
    })
  )
})
