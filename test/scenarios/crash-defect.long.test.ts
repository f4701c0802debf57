import { assert, describe } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect } from "effect"
import { vi } from "vitest"
import type { Broker } from "../../src/broker/broker.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import type { Facts } from "../../src/history/facts.ts"
import { consistentRounds, noRecords } from "../kit/consistency.ts"
import type { Installation } from "../kit/engine.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  quickRetry,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { endLeases, workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

/** Publishes an event and sees to it that it waits in the backlog, for a worker to come. */
const leaveInBacklog = Effect.fnUntraced(function* (id: string, type: string) {
  const target = { tenant: "acme", endpoint: id }
  yield* pauseEndpoint(target, undefined, "cli")
  const { stop } = yield* worker()
  yield* publish(type)
  yield* eventually(backlogged, (count) => count === 1)
  yield* stop
  yield* resumeEndpoint(target, "cli")
})

describe.concurrent("a delivery that kills its worker each time", () => {
  scenario("is put off ever longer, holds up no other, and ends as a defect", (place) =>
    story(place, publish("poison")).pipe(
      Effect.tap(([first, second, third, fourth]) =>
        // The third trial is marked, so the fourth waits for more than one ack_wait of a second.
        Effect.sync(() => {
          assert.isAtLeast(second - first, 900)
          assert.isAtLeast(fourth - third, 1_500)
        })
      )
    )
  )

  scenario("does so, too, where it waits in the backlog", (place) =>
    story(place, leaveInBacklog("poisonous", "poison")).pipe(
      Effect.tap(([first, second, third]) =>
        Effect.sync(() => {
          assert.isAtLeast(second - first, 900)
          assert.isAtLeast(third - second, 1_500)
        })
      )
    )
  )
})

/** Lives of workers until the delivery has ended; gives the times of the first trials. */
const story = <E>(
  place: Installation,
  poison: Effect.Effect<unknown, E, Broker | Facts | Scope.Scope>
) =>
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
      retry: quickRetry({ window: "15 seconds" })
    })
    yield* endpoint({ id: "other", types: ["news"], url: other.url })
    const facts = yield* history
    yield* poison

    let lives = 0
    const live = Effect.gen(function* () {
      lives++
      const worker = yield* workerProcess(place)
      kill = () => Effect.runFork(worker.kill9)
      yield* publish("news", "{}", { "Nats-Msg-Id": `acme-${lives}` })
      const ended = facts.count("dead-lettered", 1)
      yield* Effect.raceFirst(worker.killed, ended)
      if (facts.of("dead-lettered").length === 0) yield* endLeases
      else yield* Effect.andThen(facts.count("delivered", lives), consistentRounds)
    }).pipe(Effect.scoped)
    yield* Effect.repeat(live, { until: () => facts.of("dead-lettered").length > 0 })

    const end = nth(facts.of("dead-lettered"), 0)
    assert.strictEqual(end.endpoint, "poisonous")
    assert.strictEqual(end.reason, "defect")
    assert.isAtLeast(end.at, end.deadline ?? Number.POSITIVE_INFINITY)
    yield* noRecords

    assert.deepStrictEqual(
      new Set(other.requests.map(({ headers }) => headers["webhook-id"])),
      new Set(Array.from({ length: lives }, (_, index) => `acme-${index + 1}`))
    )
    const [first = 0, second = 0, third = 0, fourth = 0] = poisonous.requests.map(({ at }) => at)
    assert.isAbove(third, 0)
    return [first, second, third, fourth] as const
  })
