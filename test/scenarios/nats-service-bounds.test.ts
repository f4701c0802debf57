import { assert, describe } from "@effect/vitest"
import { createInbox } from "@nats-io/transport-node"
import { Deferred, Effect, Fiber } from "effect"
import { HttpServerResponse } from "effect/http"
import { natsClients } from "../../src/broker/clients.ts"
import { RefusalCells } from "../../src/metrics/refused-requests.ts"
import type { ServiceBounds } from "../../src/service/nats-service.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import { serveNatsApi, startConsole } from "../kit/console.ts"
import { eventually } from "../kit/engine.ts"
import type { ServiceAnswer } from "../kit/nats-requests.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** The service, with requests that are answered once they are let go on. */
const held = (bounds: Partial<ServiceBounds>) =>
  Effect.gen(function* () {
    const { connection, names } = yield* natsClients
    const released = yield* Deferred.make<void>()
    const refused = new RefusalCells()
    let begun = 0
    const app = Effect.suspend(() => {
      begun++
      return Effect.as(Deferred.await(released), HttpServerResponse.text("{}"))
    })
    yield* startNatsService(app, { refused, ...bounds })
    const answers: Array<ServiceAnswer> = []
    return {
      answers,
      begun: Effect.sync(() => begun),
      goOn: Deferred.succeed(released, undefined),
      refusals: () =>
        Object.fromEntries(
          refused.family().samples.map(({ labels, value }) => [labels.bound, value] as const)
        ),
      /** Asks so often at the same time, for a tenant. */
      ask: (tenant: string, times: number) =>
        Effect.forkChild(
          Effect.forEach(
            Array.from({ length: times }),
            () =>
              askOverNats(connection, names.subjects.api(tenant, "endpoints.list")).pipe(
                Effect.tap((answer) => Effect.sync(() => answers.push(answer)))
              ),
            { concurrency: times }
          )
        )
    }
  })

const codes = (answers: ReadonlyArray<ServiceAnswer>) => answers.map(({ code }) => code)

describe.concurrent("requests over NATS", () => {
  scenario("of a tenant that has as many under way as it may leave room for another's", () =>
    Effect.gen(function* () {
      const { answers, ask, begun, goOn, refusals } = yield* held({ atOnce: 8 })
      const many = yield* ask("acme", 10)
      yield* eventually(
        Effect.sync(() => answers),
        ({ length }) => length === 6
      )
      for (const { code, header, json } of answers) {
        assert.strictEqual(code, 503)
        assert.strictEqual(header("retry-after"), "1")
        assert.strictEqual(json.type, "urn:petrel:problem:unavailable")
      }
      const other = yield* ask("globex", 2)
      yield* eventually(begun, (count) => count === 6)
      yield* goOn
      assert.deepStrictEqual(codes(yield* Fiber.join(other)), [undefined, undefined])
      yield* Fiber.join(many)
      assert.lengthOf(
        codes(answers).filter((code) => code === 503),
        6
      )
      assert.deepInclude(refusals(), { "nats-requests": 6, "nats-rate": 0 })
      const again = yield* ask("acme", 4)
      assert.deepStrictEqual(new Set(codes(yield* Fiber.join(again))), new Set([undefined]))
    })
  )

  scenario("beyond a tenant's rate are refused at once, and no other tenant's", () =>
    Effect.gen(function* () {
      const { answers, ask, goOn, refusals } = yield* held({ perSecond: 1 })
      yield* goOn
      yield* Fiber.join(yield* ask("acme", 20))
      const refused = answers.filter(({ code }) => code === 429)
      assert.isAtLeast(refused.length, 10)
      for (const { header, json } of refused) {
        assert.strictEqual(header("retry-after"), "1")
        assert.strictEqual(json.type, "urn:petrel:problem:too-many-requests")
      }
      const other = yield* Fiber.join(yield* ask("globex", 1))
      assert.deepStrictEqual(codes(other), [undefined])
      assert.deepInclude(refusals(), { "nats-rate": refused.length })
    })
  )

  scenario(
    "that one tenant sends as fast as it can are all answered, and another's soon",
    (place) =>
      Effect.gen(function* () {
        const { connection, names } = yield* natsClients
        const { app, refused } = yield* startConsole()
        yield* startNatsService(app, { refused, broker: yield* place.connection })
        const inbox = createInbox()
        const times = 20_000
        let answered = 0
        connection.subscribe(inbox, {
          callback: () => {
            answered++
          }
        })
        const subject = names.subjects.api("acme", "endpoints.list")
        for (let n = 0; n < times; n++) connection.publish(subject, "{}", { reply: inbox })
        const other = yield* askOverNats(connection, names.subjects.api("globex", "endpoints.list"))
        assert.isUndefined(other.code, other.text)
        yield* eventually(
          Effect.sync(() => answered),
          (count) => count === times
        )
      })
  )

  scenario("that HTTP could not carry are answered, too", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      yield* serveNatsApi()
      const ask = (operation: string, body: unknown, headers = {}) =>
        askOverNats(connection, names.subjects.api("acme", operation), body, headers)
      const surrogate = yield* ask("endpoints.get", '{"id":"\\ud800"}')
      assert.strictEqual(surrogate.code, 400, surrogate.text)
      const header = yield* ask(
        "events.publish",
        { type: "a", data: 1 },
        { "Idempotency-Key": "крупа" }
      )
      assert.strictEqual(header.code, 400, header.text)
    })
  )
})
