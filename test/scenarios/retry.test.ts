import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { Broker } from "../../src/broker/broker.ts"
import type { EndpointJson } from "../../src/domain/endpoint.ts"
import { placeName } from "../../src/domain/fact.ts"
import type { ErrorClass } from "../../src/domain/outcome.ts"
import {
  deadLetters,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  quickRetry,
  secret,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import { about, assertNoneTooEarly, attempts, waits } from "../kit/outcomes.ts"
import type { Received, Receiver, Script } from "../kit/receiver.ts"
import { receiver, selfSigned, tcpServer } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const verify = (key: string, { body, headers }: Received) =>
  new Webhook(key).verify(body.toString(), headers as Record<string, string>)

const passed = (at: number) => eventually(Clock.currentTimeMillis, (now) => now > at)

describe.concurrent("an attempt that fails for a while", () => {
  const resets: Script = (request, response) => {
    if (Number(request.headers["petrel-attempt"]) > 2) return {}
    response.socket?.destroy()
    return undefined
  }
  const silent: Script = ({ headers }) => (Number(headers["petrel-attempt"]) > 2 ? {} : undefined)
  const cases: ReadonlyArray<readonly [id: string, answer: Script, told: number | ErrorClass]> = [
    ["s500", byAttempt(500, 500, 200), 500],
    ["s503", byAttempt(503, 503, 204), 503],
    ["s404", byAttempt(404, 404, 200), 404],
    ["s408", byAttempt(408, 408, 201), 408],
    ["s425", byAttempt(425, 425, 200), 425],
    ["s429", byAttempt(429, 429, 200), 429],
    ["reset", resets, "reset"],
    ["silent", silent, "timeout"]
  ]

  scenario("is made again after the policy's delays, whatever the failure", () =>
    Effect.gen(function* () {
      const receivers = new Map<string, Receiver>()
      const retry = quickRetry({ backoff: { kind: "list", delays: ["40 millis", "90 millis"] } })
      for (const [id, answer] of cases) {
        const made = yield* receiver({ answer })
        receivers.set(id, made)
        yield* endpoint({ id, url: made.url, retry, timeout: "300 millis" })
      }
      const facts = yield* history
      yield* worker()
      yield* publish("a", "[1]", { "Nats-Msg-Id": "acme-1" })
      yield* facts.count("delivered", cases.length)
      for (const [id, , told] of cases) {
        const made = receivers.get(id)
        assert.isDefined(made)
        const failed = about(facts.of("attempt-failed"), id)
        assert.deepStrictEqual(attempts(made), [1, 2, 3], id)
        assert.deepStrictEqual(
          failed.map(({ attempt, error, status, wait }) => [attempt, error?.class ?? status, wait]),
          [
            // Attempted from its event: how it waits is decided in the queue.
            [1, told, undefined],
            [2, told, "nak"]
          ]
        )
        assert.deepStrictEqual(waits(failed), [40, 90])
        assertNoneTooEarly(made, failed)
        assert.strictEqual(nth(about(facts.of("delivered"), id), 0).attempt, 3)
        for (const { body, headers } of made.requests) {
          assert.strictEqual(headers["webhook-id"], "acme-1")
          assert.strictEqual(body.toString(), "[1]")
        }
      }
      yield* eventually(waitingMessages, (count) => count === 0)
    })
  )

  scenario("ends as a dead letter when the policy's attempts are used up", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const busy = yield* receiver({ answer: { status: 500, body: "busy" } })
      const closed = yield* Effect.scoped(tcpServer(() => {}))
      const retry = quickRetry({ maxAttempts: 3 })
      yield* endpoint({ id: "busy", url: busy.url, retry })
      yield* endpoint({ id: "closed", url: `http://${closed.host}/`, retry })
      const facts = yield* history
      yield* worker()
      const { seq } = yield* publish("invoice.paid", "[1]", { "Nats-Msg-Id": "acme-1" })
      yield* facts.count("dead-lettered", 2)
      assert.deepStrictEqual(attempts(busy), [1, 2, 3])
      assert.deepStrictEqual(
        about(facts.of("attempt-failed"), "closed").map(({ attempt, error }) => [
          attempt,
          error?.class
        ]),
        [
          [1, "refused"],
          [2, "refused"],
          [3, "refused"]
        ]
      )
      const letters = yield* deadLetters
      assert.strictEqual(letters.length, 2)
      const end = nth(about(facts.of("dead-lettered"), "busy"), 0)
      assert.deepInclude(end, { reason: "attempts", attempt: 3, status: 500, round: "0" })
      const letter = letters.find((message) => message.seq === end.dead)
      assert.strictEqual(letter?.subject, names.subjects.dead("acme", "busy"))
      assert.strictEqual(letter?.string(), "[1]")
      const header = (name: string) => letter?.headers?.get(name) ?? ""
      assert.strictEqual(header("petrel-reason"), "attempts")
      assert.strictEqual(header("petrel-event"), "acme-1")
      assert.strictEqual(header("petrel-event-seq"), String(seq))
      assert.strictEqual(header("petrel-type"), "invoice.paid")
      assert.strictEqual(header("petrel-origin"), end.from && placeName(end.from))
      assert.deepInclude(JSON.parse(header("petrel-progress")), { attempts: 3, lastStatus: 500 })
      assert.strictEqual(nth(about(facts.of("dead-lettered"), "closed"), 0).error?.class, "refused")
      yield* eventually(waitingMessages, (count) => count === 0)
    })
  )
})

describe.concurrent("an attempt that fails for good", () => {
  scenario("ends its delivery at once", () =>
    Effect.gen(function* () {
      const statuses = [400, 401, 403, 405, 413, 415, 422, 303]
      const { requests, url } = yield* receiver({
        answer: ({ path }) => ({ status: Number(path.slice(1)) })
      })
      for (const status of statuses) yield* endpoint({ id: `s${status}`, url: `${url}/${status}` })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("dead-lettered", statuses.length)
      assert.strictEqual(requests.length, statuses.length)
      for (const status of statuses) {
        const told = about(facts.facts, `s${status}`)
        assert.deepStrictEqual(
          told.map(({ attempt, kind, reason, status }) => [kind, attempt, status, reason]),
          [
            ["attempt-failed", 1, status, "permanent"],
            ["dead-lettered", 1, status, "permanent"]
          ]
        )
        assert.deepStrictEqual(waits(told), [])
      }
    })
  )
})

describe.concurrent("an error", () => {
  scenario("ends its delivery at once where the policy says so, by its cause", () =>
    Effect.gen(function* () {
      const unknown = yield* receiver({ certificate: selfSigned("IP:127.0.0.1") })
      const hangsUp = yield* receiver({
        answer: (_, response) => {
          response.socket?.destroy()
          return undefined
        }
      })
      const retry = quickRetry({
        maxAttempts: 2,
        errors: { certificate: "fail", connection: "fail", reset: "retry" }
      })
      yield* endpoint({ id: "unknown", url: unknown.url, retry })
      yield* endpoint({ id: "hangs-up", url: hangsUp.url, retry })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("dead-lettered", 2)
      const ends = about(facts.of("dead-lettered"), "unknown")
      assert.deepInclude(nth(ends, 0), { reason: "permanent", attempt: 1 })
      assert.strictEqual(nth(ends, 0).error?.class, "certificate")
      const other = nth(about(facts.of("dead-lettered"), "hangs-up"), 0)
      assert.deepInclude(other, { reason: "attempts", attempt: 2 })
      assert.strictEqual(other.error?.class, "reset")
      assert.lengthOf(hangsUp.requests, 2)
    })
  )
})

describe.concurrent("the give-up deadline", () => {
  scenario("ends a delivery at once whose next attempt would come after it", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const retry = quickRetry({
        backoff: { kind: "fixed", delay: "1 hour" },
        window: "10 minutes"
      })
      yield* endpoint({ url: busy.url, retry })
      const facts = yield* history
      yield* worker()
      yield* publish("a")
      yield* facts.count("dead-lettered", 1)
      assert.deepInclude(nth(facts.of("dead-lettered"), 0), { reason: "deadline", attempt: 1 })
      assert.strictEqual(busy.requests.length, 1)
    })
  )

  scenario("ends what has waited past it without another attempt, or without any", () =>
    Effect.gen(function* () {
      const busy = yield* receiver({ answer: { status: 500 } })
      const idle = yield* receiver()
      const retry = quickRetry({
        backoff: { kind: "fixed", delay: "300 millis" },
        window: "800 millis"
      })
      yield* endpoint({ id: "tried", url: busy.url, retry, types: ["first"] })
      yield* endpoint({ id: "untried", url: idle.url, retry, types: ["second"] })
      const facts = yield* history
      const first = yield* worker()
      yield* publish("first")
      yield* facts.count("attempt-failed", 1)
      yield* first.stop
      yield* worker({ id: "router", roles: ["router"] })
      yield* publish("second")
      yield* facts.planned(2)
      const deadlines = facts
        .plans()
        .flatMap(({ plan }) => plan?.endpoints.map(({ deadline }) => deadline) ?? [])
      const triedBefore = busy.requests.length
      yield* passed(Math.max(...deadlines))
      yield* worker({ id: "w2", roles: ["deliver"] })
      yield* facts.count("dead-lettered", 2)
      const ends = facts.of("dead-lettered")
      assert.deepInclude(nth(about(ends, "tried"), 0), { reason: "deadline", attempt: triedBefore })
      assert.deepInclude(nth(about(ends, "untried"), 0), { reason: "deadline", attempt: 0 })
      assert.strictEqual(busy.requests.length, triedBefore)
      assert.strictEqual(idle.connections(), 0)
    })
  )
})

describe.concurrent("Retry-After", () => {
  scenario("lengthens the wait, up to the policy's cap, and never shortens it", () =>
    Effect.gen(function* () {
      const date = new Date((yield* Clock.currentTimeMillis) + 2_500).toUTCString()
      const once =
        (status: number, header: string): Script =>
        ({ headers }) =>
          headers["petrel-attempt"] === "1" ? { status, headers: { "retry-after": header } } : {}
      const patient = quickRetry({ backoff: { kind: "fixed", delay: "400 millis" } })
      const cases: ReadonlyArray<readonly [string, Script, Partial<EndpointJson>]> = [
        ["seconds", once(503, "2"), {}],
        ["date", once(429, date), {}],
        ["any-status", once(500, "1"), {}],
        ["shorter", once(503, "0"), { retry: patient }],
        ["past", once(503, "Thu, 01 Jan 1998 00:00:00 GMT"), { retry: patient }],
        ["garbage", once(503, "soon"), { retry: patient }],
        ["absurd", once(503, "99999999999"), { retry: quickRetry({ retryAfterCap: "300 millis" }) }]
      ]
      const receivers = new Map<string, Receiver>()
      for (const [id, answer, changes] of cases) {
        const made = yield* receiver({ answer })
        receivers.set(id, made)
        yield* endpoint({ id, url: made.url, ...changes })
      }
      const facts = yield* history
      yield* worker()
      yield* publish("a", "[1]", { "Nats-Msg-Id": "acme-1" })
      yield* facts.count("delivered", cases.length)
      const failedOf = (id: string) => about(facts.of("attempt-failed"), id)
      for (const [id, made] of receivers) {
        assert.strictEqual(made.requests.length, 2)
        assertNoneTooEarly(made, failedOf(id))
      }
      assert.deepStrictEqual(waits(failedOf("seconds")), [2_000])
      assert.strictEqual(nth(failedOf("date"), 0).nextAttemptAt, Date.parse(date))
      assert.deepStrictEqual(waits(failedOf("any-status")), [1_000])
      assert.deepStrictEqual(waits(failedOf("shorter")), [400])
      assert.deepStrictEqual(waits(failedOf("past")), [400])
      assert.deepStrictEqual(waits(failedOf("garbage")), [400])
      assert.deepStrictEqual(waits(failedOf("absurd")), [300])

      const [first, second] = receivers.get("seconds")?.requests ?? []
      assert.isDefined(first)
      assert.isDefined(second)
      assert.strictEqual(second.headers["webhook-id"], first.headers["webhook-id"])
      assert.isTrue(second.body.equals(first.body))
      assert.isAtLeast(
        Number(second.headers["webhook-timestamp"]) - Number(first.headers["webhook-timestamp"]),
        1
      )
      verify(secret, first)
      verify(secret, second)
    })
  )
})
