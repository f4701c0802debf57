import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import type { RedeliveryCursor } from "../../src/operations/dead-letters/redeliver-dead-letters.ts"
import { planRedelivery } from "../../src/operations/dead-letters/redeliver-dead-letters.ts"
import type { ReplayCursor } from "../../src/operations/replays/replay-events.ts"
import { startReplay } from "../../src/operations/replays/replay-events.ts"
import { consistentRounds, isClean } from "../kit/consistency.ts"
import { endpoint, history, publishMany, deadLetters as stored, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { deadLetters, onceEach, sorted, timesAfter } from "./redelivering.ts"
import { idsAt, paid, replayTo, upTo } from "./replaying.ts"

const { scenario } = onServer()

const by = "ana"

/** Events that an endpoint was not there for. */
const past = (count: number) =>
  Effect.gen(function* () {
    const hook = yield* receiver()
    yield* endpoint({ id: "old", types: ["none"] })
    const facts = yield* history
    yield* worker()
    yield* publishMany(count)
    yield* facts.planned(count)
    yield* endpoint({ id: "new", url: `${hook.url}/new`, types: ["invoice.>"] })
    return { facts, hook }
  })

describe.concurrent("a replay that is larger than what is in memory at a time", () => {
  scenario("is counted and sent in chunks: each event once", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* past(50)
      const cursors: Array<ReplayCursor> = []
      const to = { tenant: "acme", id: "new" }
      const { count, run } = yield* startReplay(
        { to },
        { by, chunk: 7, onCursor: (cursor) => cursors.push(cursor) }
      )
      assert.strictEqual(count, 50)
      assert.deepInclude(yield* run(), { replayed: 50, before: 0 })
      assert.lengthOf(cursors, 7)
      assert.deepStrictEqual(
        cursors.map(({ done }) => done.replayed),
        [7, 14, 21, 28, 35, 42, 49]
      )
      yield* facts.count("delivered", 50)
      yield* consistentRounds
      assert.deepStrictEqual(idsAt(hook, "/new"), paid(...upTo(50)))
    })
  )

  scenario("goes on from where it was, and does not look at what is done", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* past(50)
      const request = { to: { tenant: "acme", id: "new" }, until: Date.now() }
      let cursor: ReplayCursor | undefined
      const first = yield* startReplay(request, {
        by,
        chunk: 20,
        onCursor: (reached) => {
          cursor = reached
          throw new Error("dies here")
        }
      })
      assert.strictEqual((yield* Effect.exit(first.run()))._tag, "Failure")
      assert.lengthOf(facts.of("replayed"), 20)
      const { before, count, run } = yield* startReplay(request, { by, chunk: 20, from: cursor })
      assert.deepStrictEqual({ before, count }, { before: 0, count: 30 })
      assert.deepInclude(yield* run(), { replayed: 50, before: 0 })
      yield* facts.count("delivered", 50)
      assert.deepStrictEqual(idsAt(hook, "/new"), paid(...upTo(50)))
    })
  )

  scenario("goes on without knowing where it was", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* past(50)
      const request = { to: { tenant: "acme", id: "new" }, until: Date.now() }
      const first = yield* startReplay(request, {
        by,
        chunk: 20,
        onCursor: () => {
          throw new Error("dies here")
        }
      })
      yield* Effect.exit(first.run())
      const { before, count, run } = yield* startReplay(request, { by, chunk: 8 })
      assert.deepStrictEqual({ before, count }, { before: 20, count: 30 })
      assert.deepInclude(yield* run(), { replayed: 30, before: 20 })
      yield* facts.count("delivered", 50)
      assert.deepStrictEqual(idsAt(hook, "/new"), paid(...upTo(50)))
    })
  )

  scenario("is sent once where two do it at the same time", (place) =>
    Effect.gen(function* () {
      const { facts, hook } = yield* past(60)
      const other = yield* place.connection
      const until = Date.now()
      const [mine, theirs] = yield* Effect.all(
        [
          replayTo("new", { chunk: 7, until }),
          Effect.provideService(replayTo("new", { chunk: 16, until }), Broker, other)
        ],
        { concurrency: 2 }
      )
      assert.strictEqual(mine.begun + mine.finished + theirs.begun + theirs.finished, 60)
      yield* consistentRounds
      assert.lengthOf(facts.of("replayed"), 60)
      assert.deepStrictEqual(idsAt(hook, "/new"), paid(...upTo(60)))
    })
  )

  scenario("of what is missing leaves out the same as at once", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({
        answer: ({ headers }) => ({
          status: Number(String(headers["webhook-id"]).split("-")[1]) % 3 === 0 ? 400 : 200
        })
      })
      yield* endpoint({ url: `${hook.url}/hook`, circuit: { permanentFailures: 1_000 } })
      const facts = yield* history
      yield* worker()
      yield* publishMany(30)
      yield* facts.count("dead-lettered", 10)
      yield* facts.count("delivered", 20)
      hook.answer({})
      const counts = yield* replayTo("hook", { onlyMissing: true, chunk: 4 })
      assert.deepInclude(counts, { begun: 10, delivered: 20, open: 0, unrouted: 0 })
      yield* consistentRounds
      assert.deepStrictEqual(
        idsAt(hook, "/hook"),
        paid(...upTo(30), ...upTo(30).filter((n) => n % 3 === 0))
      )
    })
  )
})

describe.concurrent("a redelivery that is larger than what is in memory at a time", () => {
  scenario("is counted and sent in chunks: each dead letter once", () =>
    Effect.gen(function* () {
      const { hook } = yield* deadLetters(40)
      const cursors: Array<RedeliveryCursor> = []
      const { plan, run } = yield* planRedelivery(
        { all: true },
        { by, chunk: 9, onCursor: (cursor) => cursors.push(cursor) }
      )
      assert.deepInclude(plan, { selected: 40, redeliver: 40, reasons: { permanent: 40 } })
      assert.deepInclude(yield* run(), { selected: 40, redelivered: 40, before: 0 })
      assert.deepStrictEqual(
        cursors.map(({ after }) => after),
        [9, 18, 27, 36]
      )
      yield* consistentRounds
      assert.deepStrictEqual(sorted(timesAfter(hook, 40)), sorted(onceEach(40)))
      yield* isClean
    })
  )

  scenario("sends of each delivery only its newest dead letter, whichever chunk that is in", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(10)
      hook.answer({ status: 400 })
      yield* facts.count("dead-lettered", 10)
      yield* replayTo("hook", { name: "one" })
      yield* facts.count("dead-lettered", 20)
      yield* replayTo("hook", { name: "two" })
      yield* facts.count("dead-lettered", 30)
      hook.answer({ status: 200 })
      const rest = { selected: 30, before: 0, superseded: 20 }
      const { plan, run } = yield* planRedelivery({ all: true }, { by, chunk: 9 })
      assert.deepInclude(plan, { ...rest, redeliver: 10, reasons: { permanent: 10 } })
      assert.deepInclude(yield* run(), { ...rest, redelivered: 10 })
      yield* facts.count("delivered", 10)
      yield* consistentRounds
      assert.deepStrictEqual(sorted(timesAfter(hook, 30)), sorted(onceEach(10)))
      assert.isTrue(facts.of("redelivered").every(({ dead = 0 }) => dead > 20))
      const again = yield* planRedelivery({ all: true }, { by, chunk: 9 })
      assert.deepInclude(again.plan, { selected: 30, redeliver: 0, before: 10, superseded: 20 })
      const one = yield* planRedelivery({ id: [1] }, { by })
      assert.deepInclude(one.plan, { redeliver: 1, superseded: 0 })
      yield* isClean
    })
  )

  scenario("does not send what its own deliveries become", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(40)
      hook.answer({ status: 400 })
      const { run } = yield* planRedelivery({ all: true }, { by, chunk: 9 })
      yield* facts.count("dead-lettered", 40)
      assert.deepInclude(yield* run(), { selected: 40, redelivered: 40 })
      yield* facts.count("dead-lettered", 80)
      assert.lengthOf(facts.of("redelivered"), 40)
      assert.lengthOf(yield* stored, 80)
    })
  )

  scenario("goes on from where it was, by number too", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(30)
      const id = Array.from({ length: 30 }, (_, n) => n + 1)
      let cursor: RedeliveryCursor | undefined
      const first = yield* planRedelivery(
        { id },
        {
          by,
          chunk: 12,
          onCursor: (reached) => {
            cursor = reached
            throw new Error("dies here")
          }
        }
      )
      assert.strictEqual((yield* Effect.exit(first.run()))._tag, "Failure")
      assert.lengthOf(facts.of("redelivered"), 12)
      const { plan, run } = yield* planRedelivery({ id }, { by, chunk: 12, from: cursor })
      assert.deepInclude(plan, { selected: 18, redeliver: 18, before: 0 })
      assert.deepInclude(yield* run(), { selected: 30, redelivered: 30, before: 0 })
      yield* consistentRounds
      assert.deepStrictEqual(sorted(timesAfter(hook, 30)), sorted(onceEach(30)))
    })
  )
})
