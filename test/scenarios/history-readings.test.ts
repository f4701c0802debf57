import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import { bury } from "../cli/commands/dead/dead-letters.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { type Answer, startConsole } from "../kit/console.ts"
import { endpoint, eventually } from "../kit/engine.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A console on a broker whose readings of the history and of dead letters wait until they go on. */
const withHeldReadings = <A, E, R>(
  story: (readings: {
    /** How many have begun. */
    readonly begun: () => number
    readonly goOn: Effect.Effect<unknown>
  }) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const released = yield* Deferred.make<void>()
    let begun = 0
    const isHeld = (stream: string) => stream === names.history || stream === names.dead
    const altered = yield* alteredBroker(({ batch, readMessage }) => ({
      batch: (stream, ...what) =>
        isHeld(stream)
          ? Effect.suspend(() => {
              begun++
              return Effect.andThen(Deferred.await(released), batch(stream, ...what))
            })
          : batch(stream, ...what),
      // Of a diagnosis, the first reading is of the latest fact of a kind.
      readMessage: (purpose, stream, query) =>
        isHeld(stream)
          ? Effect.andThen(Deferred.await(released), readMessage(purpose, stream, query))
          : readMessage(purpose, stream, query)
    }))
    return yield* Effect.provideService(
      story({ begun: () => begun, goOn: Deferred.succeed(released, undefined) }),
      Broker,
      altered
    )
  })

const statuses = (answers: ReadonlyArray<Answer>) => answers.map(({ status }) => status)

describe.concurrent("readings of the history that callers cause", () => {
  scenario(
    "are few at once, by tenant first; some wait for their turn, and the rest is told to",
    () =>
      withHeldReadings(({ begun, goOn }) =>
        Effect.gen(function* () {
          yield* endpoint({ id: "e" })
          const { ask, token: make } = yield* startConsole()
          const [acme, globex] = [yield* make(), yield* make({ tenant: "globex" })]
          const look = (tenant: string, token: string, what: number) =>
            ask(`/v1/tenants/${tenant}/events/unknown-${what}`, { token })
          const answers: Array<Answer> = []
          const many = yield* Effect.forkChild(
            Effect.forEach(
              Array.from({ length: 30 }, (_, n) => n),
              (n) =>
                Effect.tap(look("acme", acme, n), (answer) =>
                  Effect.sync(() => answers.push(answer))
                ),
              { concurrency: 30 }
            )
          )
          yield* eventually(
            Effect.sync(() => answers),
            ({ length }) => length === 12
          )
          for (const { headers, json, status } of answers) {
            assert.strictEqual(status, 503)
            assert.strictEqual(headers.get("retry-after"), "2")
            assert.strictEqual(json.type, "urn:petrel:problem:unavailable")
            assert.include(String(json.detail), "try again")
          }
          assert.strictEqual(begun(), 2)
          const other = yield* Effect.forkChild(look("globex", globex, 0))
          yield* eventually(Effect.sync(begun), (count) => count === 3)
          yield* goOn
          assert.strictEqual((yield* Fiber.join(other)).status, 404)
          yield* Fiber.join(many)
          assert.deepStrictEqual(statuses(answers.slice(12)), Array(18).fill(404))
          assert.strictEqual((yield* look("acme", acme, 99)).status, 404)
          const { text } = yield* ask("/metrics")
          assert.include(text, 'petrel_refused_requests_total{bound="history"} 12\n')
        })
      )
  )

  scenario("of a client that leaves end, and make room for the next", () =>
    withHeldReadings(({ begun }) =>
      Effect.gen(function* () {
        const { token: make, url } = yield* startConsole()
        const headers = { authorization: `Bearer ${yield* make()}` }
        const look = (signal: AbortSignal) =>
          Effect.promise(() =>
            fetch(`${url}/v1/tenants/acme/events/unknown`, { headers, signal }).then(
              ({ status }) => status,
              () => 0
            )
          )
        const controller = new AbortController()
        const left = yield* Effect.forkChild(
          Effect.all([look(controller.signal), look(controller.signal)], { concurrency: 2 })
        )
        yield* eventually(Effect.sync(begun), (count) => count === 2)
        assert.strictEqual(yield* look(AbortSignal.timeout(20_000)), 503)
        controller.abort()
        assert.deepStrictEqual(yield* Fiber.join(left), [0, 0])
        // One that is not refused waits for the broker, as the first did.
        const another = Effect.suspend(() => look(AbortSignal.timeout(300)))
        yield* eventually(another, (status) => status === 0)
        assert.isAtLeast(begun(), 3)
      })
    )
  )

  scenario("are bounded for dead letters and diagnoses, too", () =>
    withHeldReadings(({ goOn }) =>
      Effect.gen(function* () {
        yield* bury({ endpoint: "e", event: "acme-1", reason: "permanent" })
        yield* endpoint({ id: "e" })
        const { ask, token: make } = yield* startConsole()
        const [acme, globex] = [yield* make(), yield* make({ tenant: "globex" })]
        const letters = "/v1/tenants/acme/dead-letters"
        const paths = [
          `${letters}?type=invoice.sent`,
          `${letters}/1`,
          "/v1/tenants/acme/endpoints/e/diagnosis"
        ]
        const answers: Array<Answer> = []
        const many = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: 30 }, (_, n) => paths[n % 3] ?? ""),
            (path) =>
              Effect.tap(ask(path, { token: acme }), (answer) =>
                Effect.sync(() => answers.push(answer))
              ),
            { concurrency: 30 }
          )
        )
        yield* eventually(
          Effect.sync(() => answers),
          ({ length }) => length === 12
        )
        assert.deepStrictEqual(statuses(answers), Array(12).fill(503))
        const discarded = yield* ask(`${letters}/1`, { method: "DELETE", token: acme })
        assert.strictEqual(discarded.status, 503)
        const other = yield* Effect.forkChild(
          ask("/v1/tenants/globex/dead-letters", { token: globex })
        )
        yield* goOn
        assert.strictEqual((yield* Fiber.join(other)).status, 200)
        yield* Fiber.join(many)
        assert.deepStrictEqual(statuses(answers.slice(12)), Array(18).fill(200))
      })
    )
  )

  scenario("are shared by those who ask over HTTP and over NATS", () =>
    withHeldReadings(({ begun, goOn }) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const { connection } = yield* natsClients
        const { app, ask, refused, token: make } = yield* startConsole()
        yield* startNatsService(app, { refused })
        const token = yield* make()
        const held = yield* Effect.forkChild(
          Effect.all(
            [1, 2].map((n) => ask(`/v1/tenants/acme/events/unknown-${n}`, { token })),
            { concurrency: 2 }
          )
        )
        yield* eventually(Effect.sync(begun), (count) => count === 2)
        const subject = names.subjects.api("acme", "deliveries.event")
        const answer = yield* askOverNats(connection, subject, { event: "unknown" })
        assert.strictEqual(answer.code, 503)
        assert.strictEqual(answer.header("retry-after"), "2")
        yield* goOn
        assert.deepStrictEqual(statuses(yield* Fiber.join(held)), [404, 404])
      })
    )
  )
})
