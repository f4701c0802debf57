import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
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
      const { app, ask, refused, token: make } = yield* startConsole()
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

      yield* startNatsService(app, { refused })
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

  scenario("is refused as a batch before anything is made of its events", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const mebibytes = 15 * 2 ** 20
      const fill = (text: string) => text.repeat(mebibytes / text.length)
      const bodies: ReadonlyArray<
        readonly [what: string, body: string, type: string, status: number, says: RegExp]
      > = [
        ["numbers", `[${fill("0,")}0]`, "json", 400, /at most 1000 events/],
        ["decimals", `{"type":"a","data":[${fill("1.0,")}0]}`, "json", 413, /15 MiB/],
        ["levels", `[${fill("[")}`, "json", 400, /deeper than 512/],
        ["lines", fill("{}\n"), "x-ndjson", 400, /at most 1000 events/],
        ["fields", `{${fill('"a":1,')}"b":1}`, "json", 400, /more than 64 fields/],
        ["a name", `{"${fill("x")}":1}`, "json", 400, /more than 64 KiB in addition to/],
        [
          "a header",
          `{"type":"a","data":1,"id":"${fill("x")}"}`,
          "json",
          400,
          /64 KiB in addition/
        ],
        ["base64", `{"type":"a","base64":"${fill("AAAA")}"}`, "json", 413, /15 MiB/]
      ]
      for (const [what, body, type, status, says] of bodies) {
        const began = performance.now()
        const answer = yield* ask(`${acme}/events`, {
          ...{ method: "POST", token, body },
          headers: { "content-type": `application/${type}` }
        })
        assert.isBelow(performance.now() - began, withinMs, what)
        assert.strictEqual(answer.status, status, `${what}: ${answer.text.slice(0, 300)}`)
        assert.match(answer.text, says, what)
        assert.isBelow(answer.text.length, maxAnswer, what)
      }
    })
  )

  scenario("keeps nobody else waiting", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const text = "x".repeat(16_000)
      const body = JSON.stringify(
        Array.from({ length: 990 }, () => ({ type: "a", data: { text } }))
      )
      let isOver = false
      const batches = yield* Effect.forkChild(
        Effect.forEach([1, 2], () => ask(`${acme}/events`, { method: "POST", token, body }), {
          concurrency: 2
        }).pipe(
          Effect.ensuring(
            Effect.sync(() => {
              isOver = true
            })
          )
        )
      )
      let asked = 0
      while (!isOver) {
        yield* ask("/healthz")
        asked++
      }
      // On a busy disk the broker may leave some unanswered for longer than they wait.
      for (const { json } of yield* Fiber.join(batches))
        assert.strictEqual(Number(json.stored) + Number(json.failed), 990)
      assert.isAbove(asked, 5)
    })
  )
})
