import { assert, describe } from "@effect/vitest"
import { nanos } from "@nats-io/transport-node"
import { Effect, Fiber, Stream } from "effect"
import { Broker } from "../../src/broker/connection.ts"
import { Checkpoint } from "../../src/delivery/checkpoint.ts"
import {
  changeEndpoint,
  disableEndpoint,
  removeEndpoint
} from "../../src/delivery/endpoints/endpoint-store.ts"
import { planRedelivery, redeliver } from "../../src/delivery/rounds/redeliver.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { readFates, readUnended } from "../../src/history/dead-fates.ts"
import type { DeadLetterQuery } from "../../src/history/dead-letters.ts"
import { readDeadLetters } from "../../src/history/dead-letters.ts"
import { closedBooks, quiet } from "../books.ts"
import { endpoint, eventually, history, nth, publishMany, quickRetry, worker } from "../engine.ts"
import type { Receiver } from "../receiver.ts"
import { receiver } from "../receiver.ts"
import { onServer } from "../scenario.ts"
import { crashAt } from "../worker-process.ts"

const { scenario } = onServer()

const lettersOf = (query: DeadLetterQuery = {}) => Stream.runCollect(readDeadLetters(query))

const planned = (query: DeadLetterQuery = {}, by = "ana@host") =>
  Effect.flatMap(Effect.all([lettersOf(query), readUnended(query)]), ([letters, unended]) =>
    planRedelivery({ letters, unended, by })
  )

/** Sends dead letters again, and counts what came of them. */
const sendAgain = (query: DeadLetterQuery = {}, by = "ana@host") =>
  Effect.gen(function* () {
    const plan = yield* planned(query, by)
    const counts = { begun: 0, finished: 0, before: 0, gone: 0, unfit: 0 }
    for (const { before, fresh, unfit } of plan) {
      counts.before += before
      if (unfit !== undefined) counts.unfit += fresh.length
    }
    yield* redeliver(plan, (_, begun) => counts[begun]++)
    return counts
  })

/** Events that an endpoint refuses for good, so that each is a dead letter. */
const deadLetters = (count: number, changes: Parameters<typeof endpoint>[0] = {}) =>
  Effect.gen(function* () {
    const hook = yield* receiver({ answer: { status: 400 } })
    yield* endpoint({ url: hook.url, ...changes })
    const facts = yield* history
    const first = yield* Effect.forkScoped(Effect.scoped(Effect.andThen(worker(), Effect.never)))
    yield* publishMany(count)
    yield* facts.count("dead-lettered", count)
    yield* quiet
    hook.answer({ status: 200 })
    return { facts, hook, stop: Fiber.interrupt(first) }
  })

/** Ids that came after the first so many requests, with how often each came. */
const timesAfter = ({ requests }: Receiver, before: number) => {
  const times = new Map<string, number>()
  for (const { headers } of requests.slice(before)) {
    const id = String(headers["webhook-id"])
    times.set(id, (times.get(id) ?? 0) + 1)
  }
  return times
}

const onceEach = (count: number) =>
  new Map(Array.from({ length: count }, (_, n) => [`invoice.paid-${n}`, 1] as const))

const sorted = (times: ReadonlyMap<string, number>) => [...times].toSorted()

describe.concurrent("a dead letter that is sent again", () => {
  scenario("has the same id and bytes, and begins anew", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(1)
      const counts = yield* sendAgain()
      yield* facts.count("delivered", 1)
      const [first, second] = [nth(hook.requests, 0), nth(hook.requests, 1)]
      assert.deepStrictEqual(counts, { begun: 1, finished: 0, before: 0, gone: 0, unfit: 0 })
      assert.strictEqual(second.headers["webhook-id"], first.headers["webhook-id"])
      assert.deepStrictEqual(second.body, first.body)
      assert.strictEqual(second.headers["petrel-attempt"], "1")

      const [dead, again, end] = [
        nth(facts.of("dead-lettered"), 0),
        nth(facts.of("redelivered"), 0),
        nth(facts.of("delivered"), 0)
      ]
      assert.strictEqual(again.round, `d${dead.dead}`)
      assert.strictEqual(again.dead, dead.dead)
      assert.strictEqual(again.by, "ana@host")
      assert.strictEqual(again.eventSeq, dead.eventSeq)
      assert.strictEqual(again.delivery, dead.delivery)
      assert.strictEqual(end.round, again.round)
      assert.strictEqual(end.attempt, 1)
      assert.strictEqual(end.deadline, again.deadline)
      assert.isAbove(again.deadline ?? 0, dead.deadline ?? 0)

      const [fate] = [...(yield* readFates({})).values()]
      assert.deepInclude(fate, { outcome: "delivered", by: "ana@host", endedAt: end.at })
    })
  )

  scenario("is not sent a third time, and the next one is: when it has ended again", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(1)
      hook.answer({ status: 400 })
      yield* sendAgain()
      yield* facts.count("dead-lettered", 2)
      hook.answer({ status: 200 })
      const counts = yield* sendAgain()
      yield* facts.count("delivered", 1)
      assert.deepInclude(counts, { begun: 1, before: 1 })
      const rounds = facts.of("dead-lettered").map(({ dead, round }) => [round, dead])
      assert.deepStrictEqual(rounds, [
        ["0", 1],
        ["d1", 2]
      ])
      assert.strictEqual(nth(facts.of("delivered"), 0).round, "d2")
      assert.lengthOf(hook.requests, 3)
      const fates = yield* readFates({})
      assert.deepInclude(fates.get(1), { outcome: "dead-lettered", dead: 2 })
      assert.deepInclude(fates.get(2), { outcome: "delivered" })
    })
  )

  scenario("goes out once, however many ask for it at the same time", (place) =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(60)
      const other = yield* place.connection
      const [mine, theirs] = yield* Effect.all(
        [sendAgain(), Effect.provideService(sendAgain({}, "bo@host"), Broker, other)],
        { concurrency: 2 }
      )
      yield* closedBooks
      assert.strictEqual(mine.begun + theirs.begun, 60)
      assert.lengthOf(facts.of("redelivered"), 60)
      assert.deepStrictEqual(sorted(timesAfter(hook, 60)), sorted(onceEach(60)))
    })
  )

  scenario("has the deadline and the retries of its endpoint's present policy", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(1)
      yield* changeEndpoint("acme", "hook", (config) =>
        Effect.succeed({ ...config, retry: "default" })
      )
      hook.answer({ status: 503 })
      yield* sendAgain()
      yield* facts.count("attempt-failed", 2)
      const failed = nth(facts.of("attempt-failed"), 1)
      const again = nth(facts.of("redelivered"), 0)
      assert.strictEqual((again.deadline ?? 0) - again.at, 72 * 3_600_000)
      assert.strictEqual(failed.attempt, 1)
      assert.isAtLeast((failed.nextAttemptAt ?? 0) - failed.at, 30_000)
    })
  )

  scenario("stays where its endpoint takes nothing or is gone", () =>
    Effect.gen(function* () {
      const { facts } = yield* deadLetters(2)
      yield* disableEndpoint({ tenant: "acme", endpoint: "hook" }, "maintenance", "cli")
      assert.deepInclude(yield* sendAgain(), { begun: 0, unfit: 2 })
      yield* removeEndpoint("acme", "hook")
      assert.deepInclude(yield* sendAgain(), { begun: 0, unfit: 2 })
      assert.lengthOf(facts.of("redelivered"), 0)
      assert.lengthOf(yield* lettersOf(), 2)
    })
  )
})

class Crash extends Error {}

/** Sends dead letters again, and dies at a step. */
const crashWhileSending = (step: string, arrival: number) => {
  let arrivals = 0
  const checkpoint = (reached: string) => {
    if (reached === step && ++arrivals === arrival) throw new Crash(step)
  }
  return Effect.exit(Effect.provideService(sendAgain(), Checkpoint, checkpoint))
}

describe.concurrent("sending dead letters again, broken off and begun again", () => {
  for (const [step, arrival] of [
    ["round-claimed", 7],
    ["round-stored", 7]
  ] as const)
    scenario(
      `leaves nothing out and sends nothing twice: at ${step}`,
      () =>
        Effect.gen(function* () {
          const { facts, hook } = yield* deadLetters(40)
          const broken = yield* crashWhileSending(step, arrival)
          assert.strictEqual(broken._tag, "Failure")
          const claimed = facts.of("redelivered").length
          assert.isBelow(claimed, 40)
          // What was stored has come and gone before: the broker's memory of ids is shorter than that.
          yield* quiet
          const counts = yield* sendAgain()
          yield* closedBooks
          assert.isAbove(counts.begun, 0)
          if (step === "round-claimed") assert.isAbove(counts.finished, 0)
          assert.lengthOf(facts.of("redelivered"), 40)
          assert.deepStrictEqual(sorted(timesAfter(hook, 40)), sorted(onceEach(40)))
          assert.deepInclude(yield* sendAgain(), { begun: 0, finished: 0, before: 40 })
        }),
      { moveDedupe: 100 }
    )

  scenario("finishes what was claimed for an endpoint that is gone: its round has an end", () =>
    Effect.gen(function* () {
      const { facts } = yield* deadLetters(1)
      yield* crashWhileSending("round-claimed", 1)
      yield* removeEndpoint("acme", "hook")
      assert.deepInclude(yield* sendAgain(), { finished: 1, unfit: 0 })
      yield* facts.count("dead-lettered", 2)
      const end = nth(facts.of("dead-lettered"), 1)
      assert.deepInclude(end, { round: "d1", reason: "endpoint-removed", attempt: 0 })
    })
  )
})

describe.concurrent("a dead letter that was claimed, and not sent, by somebody who died", () => {
  scenario(
    "has its end though it is too old and gone",
    () =>
      Effect.gen(function* () {
        const { facts } = yield* deadLetters(1)
        const { ask, jsm, names } = yield* Broker
        yield* crashWhileSending("round-claimed", 1)
        yield* ask("let them become too old", () =>
          jsm.streams.update(names.dead, { max_age: nanos(100) })
        )
        yield* eventually(lettersOf(), (letters) => letters.length === 0)
        assert.include((yield* audit({})).judgement.tally, { begun: 2, missing: 1 })

        assert.deepInclude(yield* sendAgain(), { begun: 0, finished: 0, gone: 1 })
        const { judgement } = yield* audit({})
        assert.strictEqual(judgement.verdict, "clean")
        assert.include(judgement.tally, { begun: 2, missing: 0 })
        assert.strictEqual(judgement.tally.reasons.get("gone"), 1)
        const ends = facts.of("dead-lettered").filter(({ reason }) => reason === "gone")
        assert.lengthOf(ends, 1)
        assert.deepInclude(ends[0], { attempt: 0, by: "ana@host", event: "invoice.paid-0" })
        assert.deepInclude(yield* sendAgain(), { gone: 0 })
        assert.deepInclude((yield* readFates({})).get(1), { outcome: "dead-lettered" })
      }),
    { moveDedupe: 100 }
  )

  scenario(
    "is sent by whoever sends another one of its endpoint",
    () =>
      Effect.gen(function* () {
        const { facts, hook } = yield* deadLetters(1)
        yield* crashWhileSending("round-claimed", 1)
        hook.answer({ status: 400 })
        yield* publishMany(1, "invoice.other")
        yield* facts.count("dead-lettered", 2)
        hook.answer({ status: 200 })
        const letters = (yield* lettersOf()).filter(({ id }) => id === 2)
        const plan = yield* planRedelivery({ letters, unended: yield* readUnended({}), by: "bo" })
        yield* redeliver(plan, () => undefined)
        yield* closedBooks
        assert.lengthOf(facts.of("redelivered"), 2)
        const times = new Map([...onceEach(1), ["invoice.other-0", 1]])
        assert.deepStrictEqual(sorted(timesAfter(hook, 2)), sorted(times))
      }),
    { moveDedupe: 100 }
  )
})

describe("kill -9 of a worker in the middle of a redelivery", () => {
  for (const step of ["answered", "outcome-stored"] as const)
    scenario(`leads to one end of each round: at ${step}`, (place) =>
      Effect.gen(function* () {
        const { facts, hook, stop } = yield* deadLetters(6, {
          maxInFlight: 2,
          retry: quickRetry({ maxAttempts: 3 })
        })
        yield* stop
        // Each fails once in its second round, and then works.
        hook.answer(({ headers }) => ({ status: headers["petrel-attempt"] === "1" ? 503 : 200 }))
        yield* sendAgain()
        yield* crashAt(place, step, 3)
        yield* worker()
        yield* facts.count("delivered", 6)
        yield* closedBooks

        const ends = facts.of("delivered").map(({ attempt, eventSeq, round }) => ({
          attempt,
          eventSeq,
          round
        }))
        const asked = facts.of("redelivered").map(({ eventSeq, round }) => ({
          attempt: 2,
          eventSeq,
          round
        }))
        const inOrder = (list: typeof ends) =>
          list.toSorted((a, b) => (a.eventSeq ?? 0) - (b.eventSeq ?? 0))
        assert.deepStrictEqual(inOrder(ends), inOrder(asked))
        assert.lengthOf(facts.of("dead-lettered"), 6)
        // Repeated is at most what was under way when the worker died.
        const again = hook.requests.length - 6
        assert.isAtLeast(again, 12)
        assert.isAtMost(again, 14)
      })
    )
})
