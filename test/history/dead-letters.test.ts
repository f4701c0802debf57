import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { afterAll, beforeAll } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import type { DeadLetterQuery } from "../../src/history/dead-letters.ts"
import { readDeadLetters } from "../../src/history/dead-letters.ts"
import { endpoint, history, installation, nth, publish, quickRetry, worker } from "../kit/engine.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

const letters = (query: DeadLetterQuery = {}) => Stream.runCollect(readDeadLetters(query))
const ids = (query: DeadLetterQuery) =>
  Effect.map(letters(query), (list) => list.map(({ id }) => id))

/** A tenant whose two endpoints fail for different reasons, after their deliveries have ended. */
const failures = Effect.gen(function* () {
  const broken = yield* receiver({ answer: { status: 503 } })
  const strict = yield* receiver({ answer: { status: 422 } })
  yield* endpoint({ id: "broken", url: broken.url, retry: quickRetry({ maxAttempts: 2 }) })
  yield* endpoint({ id: "strict", url: strict.url })
  const facts = yield* history
  yield* worker()
  const { seq } = yield* publish("invoice.paid", "x".repeat(100_000), { "Nats-Msg-Id": "acme-1" })
  yield* facts.count("dead-lettered", 2)
  return { facts, seq }
})

describe("the dead letters", () => {
  it.live("of a real delivery tell its event, its endpoint, why it ended and how it went", () =>
    installation(server).run(
      Effect.gen(function* () {
        const { facts, seq } = yield* failures
        const [letter] = yield* letters({ endpoint: { tenant: "acme", id: "broken" } })
        const ended = facts.of("dead-lettered").find((fact) => fact.endpoint === "broken")
        const attempts = facts.of("attempt-failed").filter((fact) => fact.endpoint === "broken")
        const [first, second] = [nth(attempts, 0), nth(attempts, 1)]
        assert.isDefined(letter)
        assert.strictEqual(letter.id, ended?.dead)
        assert.strictEqual(letter.reason, "attempts")
        assert.strictEqual(letter.delivery.event, "acme-1")
        assert.strictEqual(letter.delivery.eventSeq, seq)
        assert.strictEqual(letter.delivery.type, "invoice.paid")
        assert.deepStrictEqual(letter.delivery.progress, {
          attempts: 2,
          firstAttemptAt: first.at,
          lastAttemptAt: second.at,
          lastStatus: 503
        })
        assert.strictEqual(letter.deadAt, second.at)
      })
    )
  )

  it.live("are narrowed by tenant, endpoint, reason, event type and time", () =>
    installation(server).run(
      Effect.gen(function* () {
        const { facts } = yield* failures
        const idOf = (name: string) =>
          facts.of("dead-lettered").find((fact) => fact.endpoint === name)?.dead
        const broken = idOf("broken")
        const strict = idOf("strict")
        const both = [broken, strict].sort()
        assert.deepStrictEqual(yield* ids({}), both)
        assert.deepStrictEqual(yield* ids({ tenant: "acme" }), both)
        assert.deepStrictEqual(yield* ids({ tenant: "globex" }), [])
        assert.deepStrictEqual(yield* ids({ endpoint: { tenant: "acme", id: "strict" } }), [strict])
        assert.deepStrictEqual(yield* ids({ reason: "permanent" }), [strict])
        assert.deepStrictEqual(yield* ids({ reason: "attempts" }), [broken])
        const [type = ""] = (yield* letters()).map(({ delivery }) => delivery.type)
        const first = type.split(".")[0]
        assert.deepStrictEqual(yield* ids({ type }), both)
        assert.deepStrictEqual(yield* ids({ type: ["none", `${first}.>`] }), both)
        assert.deepStrictEqual(yield* ids({ type: "none.of.these" }), [])

        const { ask, jsm, names } = yield* natsClients
        const last = yield* ask("look", () => jsm.streams.getMessage(names.dead, { seq: 2 }))
        const stored = last?.time.getTime() ?? 0
        assert.include(yield* ids({ since: stored }), 2)
        assert.deepStrictEqual(yield* ids({ since: stored + 1 }), [])
      })
    )
  )

  it.live(
    "are read without their bodies, but for one where it is as large as a direct get may be",
    () =>
      installation(server).run(
        Effect.gen(function* () {
          yield* failures
          const { connection } = yield* natsClients
          const before = connection.stats().inBytes
          const list = yield* letters()
          assert.strictEqual(nth(list, 1).delivery.event, "acme-1")
          assert.isBelow(connection.stats().inBytes - before, 2 * 100_000)
        })
      )
  )

  it.live("leave out a message that is none", () =>
    installation(server).run(
      Effect.gen(function* () {
        const { ask, js, names } = yield* natsClients
        yield* ask("publish", () => js.publish(names.subjects.dead("acme", "hook"), "{}"))
        assert.deepStrictEqual(yield* letters(), [])
      })
    )
  )
})
