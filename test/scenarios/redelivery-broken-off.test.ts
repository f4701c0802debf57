import { assert, describe } from "@effect/vitest"
import { nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { Failpoint } from "../../src/broker/failpoint.ts"
import { removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { readFates } from "../../src/history/dead-fates.ts"
import { finishAbandoned, readAbandoned } from "../../src/rounds/finish-abandoned.ts"
import { consistentRounds, quiet } from "../kit/consistency.ts"
import { eventually, nth, quickRetry, worker } from "../kit/engine.ts"
import { tellMissing } from "../kit/missing-fact.ts"
import { onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

import { deadLetters, lettersOf, onceEach, sendAgain, sorted, timesAfter } from "./redelivering.ts"

const { scenario } = onServer()

class Crash extends Error {}

/** Sends dead letters again, and dies at a step. */
const crashWhileSending = (step: string, arrival: number) => {
  let arrivals = 0
  const checkpoint = (reached: string) => {
    if (reached === step && ++arrivals === arrival) throw new Crash(step)
  }
  return Effect.exit(Effect.provideService(sendAgain(), Failpoint, checkpoint))
}

/** Finishes what crashes have left, and counts what came of each round. */
const finishAll = Effect.gen(function* () {
  const counts = { begun: 0, finished: 0, before: 0, gone: 0 }
  for (const abandoned of yield* readAbandoned)
    yield* finishAbandoned(abandoned, (_, begun) => counts[begun]++)
  assert.lengthOf(yield* readAbandoned, 0)
  return counts
})

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
          yield* consistentRounds
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
      assert.deepInclude(yield* finishAll, { finished: 1, gone: 0 })
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
        const { ask, jsm, names } = yield* natsClients
        yield* crashWhileSending("round-claimed", 1)
        yield* ask("let them become too old", () =>
          jsm.streams.update(names.dead, { max_age: nanos(100) })
        )
        yield* eventually(lettersOf(), (letters) => letters.length === 0)
        assert.include((yield* audit({})).judgement.tally, { begun: 2, pending: 1, missing: 0 })

        assert.deepInclude(yield* finishAll, { begun: 0, finished: 0, gone: 1 })
        const { judgement } = yield* audit({})
        assert.strictEqual(judgement.verdict, "clean")
        assert.include(judgement.tally, { begun: 2, missing: 0 })
        assert.strictEqual(judgement.tally.reasons.get("gone"), 1)
        const ends = facts.of("dead-lettered").filter(({ reason }) => reason === "gone")
        assert.lengthOf(ends, 1)
        assert.deepInclude(ends[0], { attempt: 0, by: "ana@host", event: "invoice.paid-0" })
        assert.deepInclude(yield* finishAll, { gone: 0 })
        assert.deepInclude((yield* readFates({})).get(1), { outcome: "dead-lettered" })
      }),
    { moveDedupe: 100 }
  )

  scenario(
    "is sent though a watch has told of it as missing",
    () =>
      Effect.gen(function* () {
        const { facts, hook } = yield* deadLetters(1)
        yield* crashWhileSending("round-claimed", 1)
        yield* facts.count("redelivered", 1)
        yield* tellMissing(nth(facts.of("redelivered"), 0))
        assert.deepInclude(yield* sendAgain(), { begun: 0, finished: 1, before: 0 })
        yield* consistentRounds
        assert.deepStrictEqual(sorted(timesAfter(hook, 1)), sorted(onceEach(1)))
      }),
    { moveDedupe: 100 }
  )

  scenario(
    "is sent by a worker, which nobody asks for it",
    () =>
      Effect.gen(function* () {
        const { facts, hook, stop } = yield* deadLetters(40)
        yield* stop
        yield* crashWhileSending("round-claimed", 7)
        const claimed = facts.of("redelivered").length
        assert.isAbove(claimed, 6)
        assert.lengthOf(yield* readAbandoned, 1)
        yield* worker({ id: "second", findEvery: 200 })
        yield* facts.count("delivered", claimed)
        yield* consistentRounds
        yield* eventually(readAbandoned, (left) => left.length === 0)
        assert.lengthOf(facts.of("redelivered"), claimed)
        const times = timesAfter(hook, 40)
        assert.strictEqual(times.size, claimed)
        assert.deepStrictEqual(new Set(times.values()), new Set([1]))
      }),
    { moveDedupe: 100 }
  )
})

describe.concurrent("kill -9 of a worker in the middle of a redelivery", () => {
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
        yield* consistentRounds

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
