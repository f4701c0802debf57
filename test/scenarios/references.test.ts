import { assert, describe } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { listRecords } from "../../src/delivery/retry/retry-records.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { explainDelivery } from "../../src/operations/deliveries/explain-delivery.ts"
import { run } from "../cli/in-process.ts"
import { consistentRounds, isClean, noRecords } from "../kit/consistency.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publish,
  publishMany,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer } from "../kit/scenario.ts"
import { replayTo } from "./replaying.ts"

vi.setConfig({ maxConcurrency: 4, testTimeout: 60_000 })

const { scenario } = onServer()

const hook = { tenant: "acme", endpoint: "hook" }
const paused = { at: 1, by: "test" }
const later = Effect.delay(Effect.succeed({ status: 200 }), 20)

/** Messages and bytes of the endpoint's backlog. */
const stored = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const stream = names.backlog(partitionOf("acme", "hook", 2))
  const { state } = yield* ask("look", () => jsm.streams.info(stream))
  return { stream, messages: state.messages, bytes: state.bytes }
})

describe.concurrent("what waits for an endpoint", () => {
  scenario("takes a few bytes each, whatever its body, and is sent as it was published", () =>
    Effect.gen(function* () {
      const { url, requests } = yield* receiver()
      yield* endpoint({ url, paused })
      const facts = yield* history
      yield* worker()
      const body = "ü".repeat(20_000)
      yield* Effect.forEach(Array(40), () => publish("large", body), { concurrency: 8 })
      yield* eventually(backlogged, (count) => count === 40)
      const { bytes } = yield* stored
      assert.isBelow(bytes, 40 * 1_000)
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("delivered", 40)
      for (const request of requests) assert.strictEqual(request.body.toString(), body)
      yield* consistentRounds
      yield* isClean
    })
  )

  scenario("tells which one it is of all that wait", (place) =>
    Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url, paused })
      const facts = yield* history
      yield* worker()
      yield* publishMany(10)
      yield* eventually(backlogged, (count) => count === 10)
      const ids = facts.of("routed").map(({ event }) => `${event}.hook`)
      const shown = yield* Effect.forEach(ids, (id) => explainDelivery(id))
      const waits = shown.map(({ rounds }) => rounds[0]?.waitsIn)
      const positions = waits.map((waiter) => waiter?.position ?? 0)
      assert.deepStrictEqual(
        positions.toSorted((a, b) => a - b),
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
      )
      assert.isTrue(waits.every((waiter) => waiter?.of === 10))
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const { out } = yield* run("delivery", "show", ids[0] ?? "", ...flags)
      assert.match(
        out.join("\n"),
        new RegExp(`, ${positions[0]} of the 10 that wait for its endpoint`)
      )
    })
  )

  scenario("keeps its body where its event may be removed before its deadline", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url, paused, retry: quickRetry({ window: "8 days" }) })
      const facts = yield* history
      yield* worker()
      yield* publish("large", "x".repeat(20_000))
      yield* eventually(backlogged, (count) => count === 1)
      assert.isAbove((yield* stored).bytes, 20_000)
      const { ask, jsm, names } = yield* natsClients
      yield* ask("remove the event", () => jsm.streams.purge(names.events))
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("delivered", 1)
    })
  )

  scenario("keeps its body where it is replayed and its event is too old to last", (place) =>
    Effect.gen(function* () {
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      assert.strictEqual((yield* run("init", "--event-age", "20 minutes", ...flags)).code, 0)
      const { url, requests } = yield* receiver()
      // With the ten minutes that a dead letter needs, an event must last for all but 5 s of its 20.
      yield* endpoint({ url, paused, retry: quickRetry({ window: "595 seconds" }) })
      const facts = yield* history
      yield* worker()
      const body = "ü".repeat(20_000)
      yield* publish("large", body)
      yield* eventually(backlogged, (count) => count === 1)
      assert.isBelow((yield* stored).bytes, 1_000)
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("delivered", 1)
      yield* pauseEndpoint(hook, undefined, "test")
      const eventAt = facts.of("delivered")[0]?.eventAt ?? Number.NaN
      yield* eventually(Clock.currentTimeMillis, (now) => now - eventAt > 6_000)
      yield* replayTo("hook")
      yield* eventually(backlogged, (count) => count === 1)
      assert.isAbove((yield* stored).bytes, 20_000)
      const { ask, jsm, names } = yield* natsClients
      yield* ask("remove the event", () => jsm.streams.purge(names.events))
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("delivered", 2)
      assert.deepStrictEqual(
        requests.map((request) => request.body.toString()),
        [body, body]
      )
    })
  )

  scenario("keeps events from being removed before its deadline", (place) =>
    Effect.gen(function* () {
      const { url } = yield* receiver()
      yield* endpoint({ url, paused, retry: quickRetry({ window: "1 hour" }) })
      yield* worker()
      yield* publishMany(1)
      yield* eventually(backlogged, (count) => count === 1)
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const refused = yield* run("init", "--event-age", "1 hour", ...flags)
      assert.strictEqual(refused.code, 1)
      assert.match(refused.err.join(), /--event-age \(1 h\) must be longer than 1 h 10 min: /)
      const taken = yield* run("init", "--event-age", "2 hours", ...flags)
      assert.strictEqual(taken.code, 0, taken.err.join())
    })
  )

  scenario("is not sent again by the next owner where its message was sent in part", () =>
    Effect.gen(function* () {
      const slow = yield* receiver({ answer: () => Effect.runPromise(later) })
      yield* endpoint({ url: slow.url, paused, maxInFlight: 1 })
      const facts = yield* history
      const first = yield* worker()
      yield* publishMany(60)
      yield* eventually(backlogged, (count) => count === 60)
      yield* resumeEndpoint(hook, "test")
      yield* slow.received(20)
      yield* pauseEndpoint(hook, undefined, "test")
      const { stream } = yield* stored
      // Those of its messages that have ended in part are told of, since they stay.
      yield* eventually(listRecords(stream), (records) =>
        [...records.keys()].some(Number.isInteger)
      )
      const before = facts.of("delivered").length
      assert.isBelow(before, 60)
      yield* first.stop
      const second = yield* worker({ id: "w2" })
      yield* second.delivering
      yield* second.stop
      yield* resumeEndpoint(hook, "test")
      yield* worker({ id: "w3" })
      yield* facts.count("delivered", 60)
      assert.strictEqual(slow.requests.length, 60)
      yield* consistentRounds
      yield* eventually(backlogged, (count) => count === 0)
      yield* noRecords
    })
  )

  scenario("is counted once by the audit where it left a message that stays for others", () =>
    Effect.gen(function* () {
      let sent = 0
      const flaky = yield* receiver({
        answer: () => {
          const status = ++sent === 3 ? 503 : 200
          return Effect.runPromise(Effect.delay(Effect.succeed({ status }), 20))
        }
      })
      const backoff = { kind: "fixed", delay: "10 minutes" } as const
      yield* endpoint({
        url: flaky.url,
        paused,
        maxInFlight: 1,
        retry: quickRetry({ backoff, window: "1 hour" })
      })
      const facts = yield* history
      yield* worker()
      yield* publishMany(60)
      yield* eventually(backlogged, (count) => count === 60)
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("attempt-failed", 1)
      yield* pauseEndpoint(hook, undefined, "test")
      const { stream } = yield* stored
      yield* eventually(listRecords(stream), (records) =>
        [...records.keys()].some(Number.isInteger)
      )
      const tally = yield* isClean
      const delivered = facts.of("delivered").length
      assert.deepStrictEqual(
        { begun: tally.begun, delivered: tally.delivered, pending: tally.pending },
        { begun: 60, delivered, pending: 60 - delivered }
      )
      // Its entry stays with the others, but it no longer waits there.
      const { ask, jsm, names } = yield* natsClients
      const queue = names.deliveries(partitionOf("acme", "hook", 2))
      const failed = `${facts.of("attempt-failed")[0]?.event}.hook`
      const before = yield* explainDelivery(failed)
      assert.strictEqual(before.rounds[0]?.waitsIn?.stream, queue)
      yield* ask("lose its retry", () => jsm.streams.purge(queue))
      assert.isNull((yield* explainDelivery(failed)).rounds[0]?.waitsIn)
      const { judgement } = yield* audit({})
      assert.strictEqual(judgement.problems.counts.get("missing"), 1)
      assert.strictEqual(judgement.verdict, "problems")
    })
  )

  for (const [how, maxWaiting] of [
    ["in the queue", 100],
    ["as a schedule", 0]
  ] as const)
    scenario(`is not copied for a retry where its body is large, ${how}`, (place) =>
      Effect.gen(function* () {
        const { url, requests } = yield* receiver({ answer: byAttempt(503, 503, 200) })
        const backoff = { kind: "fixed", delay: "4 seconds" } as const
        yield* endpoint({ url, retry: quickRetry({ backoff, window: "1 hour" }) })
        const facts = yield* history
        yield* worker({ maxWaiting })
        const body = "ü".repeat(20_000)
        yield* Effect.forEach(Array(10), () => publish("large", body), { concurrency: 8 })
        yield* facts.count("attempt-failed", 10)
        const { ask, jsm, names } = yield* natsClients
        const queue = names.deliveries(partitionOf("acme", "hook", 2))
        const { state } = yield* ask("look", () => jsm.streams.info(queue))
        assert.isBelow(state.bytes, 10 * 2_000)
        // They need their events, as what waits in a backlog does.
        const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const refused = yield* run("init", "--event-age", "1 hour", ...flags)
        assert.match(refused.err.join(), /--event-age \(1 h\) must be longer than 1 h 10 min: /)
        yield* facts.count("delivered", 10)
        assert.lengthOf(requests, 30)
        for (const request of requests) assert.strictEqual(request.body.toString(), body)
        yield* consistentRounds
        yield* isClean
        yield* noRecords
      })
    )

  scenario("is a dead letter with its body, though its retries were not copied", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver({ answer: { status: 503 } })
      yield* endpoint({ url, retry: quickRetry({ maxAttempts: 2 }) })
      const facts = yield* history
      yield* worker()
      const body = "ü".repeat(20_000)
      yield* publish("large", body)
      yield* facts.count("dead-lettered", 1)
      const { ask, jsm, names } = yield* natsClients
      const letter = yield* ask("read", () =>
        jsm.streams.getMessage(names.dead, { last_by_subj: names.subjects.dead("acme", "hook") })
      )
      assert.strictEqual(Buffer.from(letter?.data ?? []).toString(), body)
      assert.strictEqual(letter?.header.get("petrel-left-bytes"), "")
      yield* isClean
    })
  )

  scenario("ends where its retry is due and somebody has removed its event", () =>
    Effect.gen(function* () {
      const { url, requests } = yield* receiver({ answer: byAttempt(503, 200) })
      const backoff = { kind: "fixed", delay: "3 seconds" } as const
      yield* endpoint({ url, retry: quickRetry({ backoff }) })
      const facts = yield* history
      yield* worker()
      yield* publish("large", "x".repeat(40_000))
      yield* facts.count("attempt-failed", 1)
      const { ask, jsm, names } = yield* natsClients
      yield* ask("remove the event", () => jsm.streams.purge(names.events))
      yield* facts.count("dead-lettered", 1)
      assert.deepStrictEqual(
        facts.of("dead-lettered").map(({ reason }) => reason),
        ["event-gone"]
      )
      assert.lengthOf(requests, 1)
      const { judgement } = yield* audit({})
      assert.strictEqual(judgement.problems.counts.get("event-gone"), 1)
    })
  )

  scenario("ends, and the audit says so, where somebody removes its event", () =>
    Effect.gen(function* () {
      const { url, requests } = yield* receiver()
      yield* endpoint({ url, paused })
      const facts = yield* history
      yield* worker()
      yield* publishMany(3)
      yield* eventually(backlogged, (count) => count === 3)
      const { ask, jsm, names } = yield* natsClients
      yield* ask("remove two events", () => jsm.streams.purge(names.events, { seq: 3 }))
      yield* resumeEndpoint(hook, "test")
      yield* facts.count("delivered", 1)
      yield* facts.count("dead-lettered", 2)
      const why = facts.of("dead-lettered").map(({ reason }) => reason)
      assert.deepStrictEqual(why, ["event-gone", "event-gone"])
      assert.strictEqual(requests.length, 1)
      const { judgement } = yield* audit({})
      assert.strictEqual(judgement.problems.counts.get("event-gone"), 2)
      assert.notStrictEqual(judgement.verdict, "clean")
    })
  )
})
