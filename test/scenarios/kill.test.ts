import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { crashBroker } from "../kit/broker-crash.ts"
import { consistentRounds } from "../kit/consistency.ts"
import { endpoint, publish, quickRetry } from "../kit/engine.ts"
import { fewOf, isLong } from "../kit/long.ts"
import type { Received } from "../kit/receiver.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 120_000 })

const { scenario } = onServer()

const seed = Number(process.env.PETREL_TEST_SEED ?? Date.now() % 1_000_000)

/** Numbers from 0 to below 1, always the same for a seed. */
const randomness = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const endpoints = ["a", "b", "c", "d"]
const maxInFlight = 4
/** Between two events. Four endpoints get each of them. */
const publishPauseMs = isLong ? 12 : 24

const keyOf = ({ headers, path }: Received) =>
  `${headers["webhook-id"]} to ${path}, attempt ${headers["petrel-attempt"]}`

/** Answers some requests with errors and all after a moment, so that there are some under way at a kill. */
const unreliable = (random: () => number) => async () => {
  const status = random() < 0.15 ? 503 : random() < 0.03 ? 400 : 200
  await latency(random() * 20)
  return { status }
}

describe(`kill -9 at any moment, seed ${seed} (PETREL_TEST_SEED)`, () => {
  scenario("loses nothing, and repeats only what was under way", (place, server) =>
    Effect.gen(function* () {
      const random = randomness(seed)
      const hook = yield* receiver({ answer: unreliable(randomness(seed + 1)) })
      yield* Effect.forEach(endpoints, (id) =>
        endpoint({
          id,
          url: `${hook.url}/${id}`,
          maxInFlight,
          retry: quickRetry({
            backoff: { kind: "fixed", delay: "200 millis" },
            maxAttempts: 3,
            window: "10 minutes"
          })
        })
      )

      const acknowledged = new Set<string>()
      let publishing = true
      const publisher = yield* Effect.forkScoped(
        Effect.gen(function* () {
          for (let n = 0; publishing; n++) {
            const id = `acme-${n}`
            yield* publish("invoice.paid", id, { "Nats-Msg-Id": id }).pipe(Effect.eventually)
            acknowledged.add(id)
            yield* Effect.sleep(publishPauseMs)
          }
        })
      )

      /** When workers were killed, ms since the epoch. */
      const kills: Array<number> = []
      const start = workerProcess(place, { leaseTtl: 2_000, maxWaiting: 20 })
      let worker = yield* start
      for (const [killsWorker, killsBroker] of fewOf(
        [
          [true, true],
          [true, false],
          [false, true],
          [random() < 0.5, true]
        ] as const,
        2
      )) {
        yield* worker.delivering
        yield* hook.received(hook.requests.length + 1)
        // The moment of the kill is the seed's, not that of a condition.
        yield* Effect.sleep(300 + random() * 1_000)
        if (killsWorker) {
          yield* worker.kill9
          kills.push(Date.now())
        }
        if (killsBroker) yield* crashBroker(server)
        if (killsWorker) worker = yield* start
      }
      yield* worker.delivering
      publishing = false
      yield* Fiber.join(publisher)

      const accounts = yield* consistentRounds
      assert.strictEqual(accounts.length, acknowledged.size * endpoints.length)
      assert.deepStrictEqual(new Set(accounts.map(({ event }) => event)), acknowledged)

      const seen = new Map<string, Array<number>>()
      for (const request of hook.requests) {
        const times = seen.get(keyOf(request)) ?? []
        seen.set(keyOf(request), [...times, request.at])
      }
      for (const { attempts, endpoint, event } of accounts)
        for (const attempt of attempts)
          assert.isTrue(seen.has(`${event} to /${endpoint}, attempt ${attempt}`))

      let repeats = 0
      for (const [key, [first = 0, ...again]] of seen)
        for (const at of again) {
          repeats++
          assert.isTrue(
            kills.some((kill) => first <= kill && kill <= at),
            `${key} was repeated, and no worker was killed between`
          )
        }
      assert.isAtMost(repeats, kills.length * endpoints.length * maxInFlight)
    })
  )
})
