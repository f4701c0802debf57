import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { closedBooks, noRecords } from "../books.ts"
import { endpoint, history, nth, publish, quickRetry } from "../engine.ts"
import { receiver } from "../receiver.ts"
import { onServer } from "../scenario.ts"
import { endLeases, workerProcess } from "../worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

describe("a delivery that kills its worker each time", () => {
  scenario("is put off ever longer, holds up no other, and ends as a defect", (place) =>
    Effect.gen(function* () {
      let kill = () => {}
      const poisonous = yield* receiver({
        // Never answered: the worker dies of it.
        answer: () => {
          kill()
          return undefined
        }
      })
      const other = yield* receiver()
      yield* endpoint({
        id: "poisonous",
        types: ["poison"],
        url: poisonous.url,
        retry: quickRetry({ window: "8 seconds" })
      })
      yield* endpoint({ id: "other", types: ["news"], url: other.url })
      const facts = yield* history
      yield* publish("poison")

      let lives = 0
      const live = Effect.gen(function* () {
        lives++
        const worker = yield* workerProcess(place)
        kill = () => Effect.runFork(worker.kill9)
        yield* publish("news", "{}", { "Nats-Msg-Id": `acme-${lives}` })
        const ended = facts.count("dead-lettered", 1)
        yield* Effect.raceFirst(worker.killed, ended)
        if (facts.of("dead-lettered").length === 0) yield* endLeases
        else yield* Effect.andThen(facts.count("delivered", lives), closedBooks)
      }).pipe(Effect.scoped)
      yield* Effect.repeat(live, { until: () => facts.of("dead-lettered").length > 0 })

      const end = nth(facts.of("dead-lettered"), 0)
      assert.strictEqual(end.endpoint, "poisonous")
      assert.strictEqual(end.reason, "defect")
      assert.isAtLeast(end.at, end.deadline ?? Number.POSITIVE_INFINITY)
      yield* noRecords

      const times = poisonous.requests.map(({ at }) => at)
      const [first = 0, second = 0, third = 0, fourth = 0] = times
      assert.isAtLeast(times.length, 4)
      // The third trial is marked, so the fourth waits for more than one ack_wait, as the second did.
      assert.isAtLeast(fourth - third, second - first + 500)

      assert.deepStrictEqual(
        new Set(other.requests.map(({ headers }) => headers["webhook-id"])),
        new Set(Array.from({ length: lives }, (_, index) => `acme-${index + 1}`))
      )
    })
  )
})
