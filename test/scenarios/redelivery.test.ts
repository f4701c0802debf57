import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { disableEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { changeEndpoint, removeEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { readFates } from "../../src/history/dead-fates.ts"
import { redeliver } from "../../src/rounds/redeliver.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { nth } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

import {
  deadLetters,
  lettersOf,
  onceEach,
  planned,
  sendAgain,
  sorted,
  timesAfter
} from "./redelivering.ts"

const { scenario } = onServer()

describe.concurrent("a dead letter that is sent again", () => {
  scenario("has the same id and bytes, and begins anew", () =>
    Effect.gen(function* () {
      const { facts, hook } = yield* deadLetters(1)
      const counts = yield* sendAgain()
      yield* facts.count("delivered", 1)
      const [first, second] = [nth(hook.requests, 0), nth(hook.requests, 1)]
      assert.deepStrictEqual(counts, {
        begun: 1,
        finished: 0,
        before: 0,
        gone: 0,
        unfit: 0,
        late: 0
      })
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
      yield* consistentRounds
      assert.strictEqual(mine.begun + theirs.begun, 60)
      assert.lengthOf(facts.of("redelivered"), 60)
      assert.deepStrictEqual(sorted(timesAfter(hook, 60)), sorted(onceEach(60)))
    })
  )

  scenario("is counted by whoever claimed it, where another one had planned to send it", () =>
    Effect.gen(function* () {
      const { facts } = yield* deadLetters(60)
      const theirs = yield* planned({}, "bo@host")
      assert.deepInclude(yield* sendAgain(), { begun: 60, before: 0 })
      const counts = { begun: 0, finished: 0, before: 0, gone: 0 }
      yield* redeliver(theirs, (_, begun) => counts[begun]++)
      assert.deepStrictEqual(counts, { begun: 0, finished: 0, before: 60, gone: 0 })
      assert.lengthOf(facts.of("redelivered"), 60)
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
