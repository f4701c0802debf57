import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { audit } from "../../src/history/audit/audit.ts"
import { crashBroker } from "../kit/broker-crash.ts"
import { quiet } from "../kit/consistency.ts"
import { endpoint, publish, quickRetry } from "../kit/engine.ts"
import type { Received } from "../kit/receiver.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { workerProcess } from "../kit/worker-process.ts"

/** More of them for a long run. */
const rounds = Number(process.env.PETREL_TEST_ROUNDS ?? 2)

vi.setConfig({ testTimeout: 30_000 + rounds * 30_000 })

const { scenario } = onServer()

const endpoints = ["a", "b", "c"]
const attempts = 3

/** The same answer for the same request however often it is repeated: some fail once, some for good. */
const statusOf = ({ headers }: Received): number => {
  const number = Number(String(headers["webhook-id"]).split("-").at(-1))
  if (number % 13 === 0) return 400
  if (number % 17 === 0) return 503
  return number % 5 === 0 && headers["petrel-attempt"] === "1" ? 503 : 200
}

const keyOf = ({ headers, path }: Received) => `${headers["webhook-id"]} to ${path}`

describe("kill -9 of broker and worker at any moment, and an audit", () => {
  scenario(
    `is clean after each of ${rounds} rounds (PETREL_TEST_ROUNDS), and counts what came`,
    (place, server) =>
      Effect.gen(function* () {
        const hook = yield* receiver({
          answer: async (request) => {
            await latency(Math.random() * 20)
            return { status: statusOf(request) }
          }
        })
        yield* Effect.forEach(endpoints, (id) =>
          endpoint({
            id,
            url: `${hook.url}/${id}`,
            maxInFlight: 4,
            retry: quickRetry({
              backoff: { kind: "fixed", delay: "200 millis" },
              maxAttempts: attempts,
              window: "10 minutes"
            })
          })
        )
        const start = workerProcess(place, { leaseTtl: 2_000, maxWaiting: 20 })
        let worker = yield* start
        let published = 0
        for (let round = 1; round <= rounds; round++) {
          yield* worker.delivering
          let publishing = true
          const publisher = yield* Effect.forkScoped(
            Effect.gen(function* () {
              while (publishing) {
                const id = `acme-${published + 1}`
                yield* publish("invoice.paid", id, { "Nats-Msg-Id": id }).pipe(Effect.eventually)
                published++
                yield* Effect.sleep("8 millis")
              }
            })
          )
          yield* hook.received(hook.requests.length + 30)
          yield* Effect.sleep(Math.random() * 600)
          const killsWorker = Math.random() < 0.7
          if (killsWorker) yield* worker.kill9
          if (!killsWorker || Math.random() < 0.5) yield* crashBroker(server)
          if (killsWorker) worker = yield* start
          yield* worker.delivering
          publishing = false
          yield* Fiber.join(publisher)
          const during = yield* audit({})
          assert.deepStrictEqual(during.judgement.problems.list, [], "before all has ended")

          yield* quiet
          const { judgement } = yield* audit({})
          assert.deepStrictEqual(judgement.problems.list, [])
          assert.strictEqual(judgement.verdict, "clean")
          const taken = new Set(
            hook.requests.filter((request) => statusOf(request) === 200).map(keyOf)
          )
          const refused = new Set(hook.requests.map(keyOf).filter((key) => !taken.has(key)))
          const { begun, deadLettered, delivered, pending } = judgement.tally
          assert.deepStrictEqual(
            { begun, delivered, deadLettered, pending },
            {
              begun: published * endpoints.length,
              delivered: taken.size,
              deadLettered: refused.size,
              pending: 0
            }
          )
        }
      })
  )
})
