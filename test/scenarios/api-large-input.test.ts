import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import type { Answer } from "../kit/console.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint } from "../kit/engine.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const acme = "/v1/tenants/acme"

/** An object with many fields that nothing has. 8,000 take 180 KiB. */
const unknownFields = (count: number, name = "unknown-field") =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${name}-${at}`, 1]))

/** How long any of these answers may take, ms. Before, one took 100 s. */
const withinMs = 5_000
/** How long an answer may be, bytes, beside what it says of each event. */
const maxAnswer = 32 * 1024

const timed = <E, R>(what: string, answered: Effect.Effect<Answer, E, R>) =>
  Effect.gen(function* () {
    const began = performance.now()
    const answer = yield* answered
    assert.isBelow(performance.now() - began, withinMs, what)
    assert.strictEqual(answer.status, 400, `${what}: ${answer.text.slice(0, 300)}`)
    return answer
  })

describe("a request with thousands of problems", () => {
  scenario("is answered at once with the first of them, whatever it asks for", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e" })
      const { app, ask, token: make } = yield* startConsole()
      const token = yield* make()
      const body = unknownFields(8_000)
      const long = { ["k".repeat(120_000)]: 1, ["u".repeat(110_000)]: "v".repeat(1_000) }
      const deep = `{"url":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
      const requests: ReadonlyArray<readonly [what: string, path: string, request: object]> = [
        ["put", `${acme}/endpoints/e`, { method: "PUT", body }],
        ["patch", `${acme}/endpoints/e`, { method: "PATCH", body }],
        ["inside", `${acme}/endpoints/e`, { method: "PATCH", body: { circuit: body } }],
        ["headers", `${acme}/endpoints/e`, { method: "PATCH", body: { headers: body } }],
        [
          "types",
          `${acme}/endpoints/e`,
          { method: "PATCH", body: { types: Array.from({ length: 30_000 }, () => "a..b") } }
        ],
        ["long names", `${acme}/endpoints/e`, { method: "PATCH", body: long }],
        [
          "a long preset",
          `${acme}/endpoints/e`,
          { method: "PATCH", body: { retry: "x".repeat(200_000) } }
        ],
        [
          "deep",
          `${acme}/endpoints/e`,
          { method: "PATCH", body: deep, headers: { "content-type": "application/json" } }
        ],
        [
          "a deep list",
          `${acme}/endpoints/e`,
          {
            method: "PATCH",
            body: `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
            headers: { "content-type": "application/json" }
          }
        ],
        ["tokens", `${acme}/tokens`, { method: "POST", body }],
        ["replays", `${acme}/replays`, { method: "POST", body }],
        [
          "a query",
          `${acme}/endpoints?${Array.from({ length: 1_500 }, (_, at) => `q${at}=1`).join("&")}`,
          {}
        ],
        ["an event", `${acme}/events`, { method: "POST", body: { type: "a", data: 1, ...body } }],
        [
          "an event's headers",
          `${acme}/events`,
          { method: "POST", body: { type: "a", data: 1, headers: body } }
        ]
      ]
      for (const [what, path, request] of requests) {
        const { json, text } = yield* timed(what, ask(path, { token, ...request }))
        assert.isBelow(text.length, maxAnswer, what)
        const errors = json.errors as ReadonlyArray<{ readonly field: string }>
        assert.isNotEmpty(errors, what)
        assert.isAtMost(errors.length, 21, what)
        for (const { field } of errors) assert.notStrictEqual(field, "", what)
      }

      const event = { type: "a", data: 1, ...unknownFields(200, "x") }
      const lines = Array.from({ length: 1_000 }, () => JSON.stringify(event))
      const batch = yield* ask(`${acme}/events`, {
        method: "POST",
        token,
        body: lines.join("\n"),
        headers: { "content-type": "application/x-ndjson" }
      })
      assert.strictEqual(batch.status, 200, batch.text.slice(0, 300))
      assert.deepInclude(batch.json, { failed: 1_000 })
      assert.isBelow(batch.text.length, 1_000_000)

      yield* startNatsService(app)
      const { names } = yield* Broker
      const { connection } = yield* natsClients
      const began = performance.now()
      const overNats = yield* askOverNats(
        connection,
        names.subjects.api("acme", "endpoints.patch"),
        { id: "e", ...body }
      )
      assert.isBelow(performance.now() - began, withinMs)
      assert.strictEqual(overNats.code, 400)
      assert.isBelow(overNats.text.length, maxAnswer)
    })
  )
})
