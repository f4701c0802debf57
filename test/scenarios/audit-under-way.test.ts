import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { audit } from "../../src/history/audit/audit.ts"
import { quiet } from "../kit/consistency.ts"
import { endpoint, quickRetry } from "../kit/engine.ts"
import type { Received } from "../kit/receiver.ts"
import { latency, receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { steadyPublisher } from "../kit/steady-publisher.ts"
import { workerProcess } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { scenario } = onServer()

const endpoints = ["a", "b", "c", "down"]

const keyOf = ({ headers, path }: Received) => `${headers["webhook-id"]} to ${path}`
const numberOf = ({ headers }: Received) => Number(String(headers["webhook-id"]).split("-").at(-1))

describe("audits all the time", () => {
  scenario(
    "raise no false alarm while three workers work, one is killed and a backlog drains",
    (place) =>
      Effect.gen(function* () {
        let isDown = true
        const statusOf = (request: Received): number => {
          if (request.path === "/down" && isDown) return 503
          if (numberOf(request) % 11 === 0) return 400
          return numberOf(request) % 5 === 0 && request.headers["petrel-attempt"] === "1"
            ? 503
            : 200
        }
        const answered = new Map<string, number>()
        const hook = yield* receiver({
          answer: async (request) => {
            await latency(15)
            const status = statusOf(request)
            answered.set(keyOf(request), status)
            return { status }
          }
        })
        yield* Effect.forEach(endpoints, (id) =>
          endpoint({
            id,
            url: `${hook.url}/${id}`,
            maxInFlight: 4,
            retry: quickRetry({
              backoff: { kind: "fixed", delay: "300 millis" },
              maxAttempts: 100,
              window: "10 minutes"
            }),
            ...(id === "down"
              ? { circuit: { failures: 3, coolDown: "500 millis", maxCoolDown: "500 millis" } }
              : {})
          })
        )
        const [killed, ...others] = yield* Effect.forEach(
          ["killed", "second", "third"],
          (id) => workerProcess(place, { id, leaseTtl: 2_000, maxWaiting: 20 }),
          { concurrency: "unbounded" }
        )
        assert.isDefined(killed)
        yield* Effect.forEach([killed, ...others], ({ delivering }) => delivering)

        let isOver = false
        const publisher = yield* steadyPublisher("invoice.paid", 10)
        let audits = 0
        let mostPending = 0
        const auditor = yield* Effect.forkScoped(
          Effect.gen(function* () {
            while (!isOver) {
              const { judgement } = yield* audit({})
              assert.deepStrictEqual(judgement.problems.list, [])
              audits++
              mostPending = Math.max(mostPending, judgement.tally.pending)
            }
          })
        )
        yield* hook.received(150)
        yield* killed.kill9
        yield* hook.received(hook.requests.length + 100)
        isDown = false
        yield* hook.received(hook.requests.length + 200)
        const published = yield* publisher.stop
        isOver = true
        yield* Fiber.join(auditor)
        assert.isAtLeast(audits, 3)
        assert.isAbove(mostPending, 20)

        yield* quiet
        const { judgement } = yield* audit({})
        assert.strictEqual(judgement.verdict, "clean")
        const { begun, deadLettered, delivered, missing, pending } = judgement.tally
        const withStatus = (wanted: number) =>
          [...answered.values()].filter((status) => status === wanted).length
        assert.deepStrictEqual(
          { begun, delivered, deadLettered, missing, pending },
          {
            begun: published * endpoints.length,
            delivered: withStatus(200),
            deadLettered: withStatus(400),
            missing: 0,
            pending: 0
          }
        )
      }),
    { partitions: 4 },
    120_000
  )
})
