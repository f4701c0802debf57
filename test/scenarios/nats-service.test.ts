import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import { startConsole } from "../kit/console.ts"
import { eventually, history, nth, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** Starts the service, and asks it as any NATS client can. */
const startService = Effect.gen(function* () {
  const { connection, names } = yield* natsClients
  const { app } = yield* startConsole()
  yield* startNatsService(app)
  yield* Effect.promise(() => connection.flush())
  const request = (subject: string, text: string) =>
    Effect.promise(async () => {
      const message = await connection.request(subject, text, { timeout: 10_000 })
      const body = message.string()
      return {
        code: message.headers?.get("Nats-Service-Error-Code") ?? "",
        description: message.headers?.get("Nats-Service-Error") ?? "",
        status: message.headers?.get("status"),
        json: body === "" ? {} : JSON.parse(body)
      }
    })
  const ask = (tenant: string, operation: string, message: unknown = "") =>
    request(
      names.subjects.api(tenant, operation),
      typeof message === "string" ? message : JSON.stringify(message)
    )
  const control = (verb: string) => request(`$SRV.${verb}.${names.subjects.root}`, "")
  return { ask, control }
})

describe.concurrent("the NATS service", () => {
  scenario("publishes, manages endpoints, and says what became of an event", () =>
    Effect.gen(function* () {
      const { ask } = yield* startService
      const hook = yield* receiver()
      const facts = yield* history
      yield* worker()
      const url = hook.url
      const added = yield* ask("acme", "endpoints.put", { id: "hook", body: { url, types: ["a"] } })
      assert.deepInclude(added, { code: "", status: "201" })
      assert.include(JSON.stringify(added.json), "whsec_")
      const got = yield* ask("acme", "endpoints.get", { id: "hook" })
      assert.deepInclude(got.json, { id: "hook", url })
      const event = { type: "a", id: "one", data: { total: 1 } }
      const published = yield* ask("acme", "events.publish", { body: event })
      assert.deepInclude(published.json, { id: "acme.one", tenant: "acme", duplicate: false })
      yield* hook.received(1)
      assert.strictEqual(nth(hook.requests, 0).body.toString(), '{"total":1}')
      yield* facts.count("delivered", 1)
      const delivery = { delivery: "acme.one.hook" }
      const life = yield* ask("acme", "deliveries.delivery", delivery)
      assert.strictEqual(life.json.rounds[0].state, "delivered")
      assert.strictEqual((yield* ask("acme", "endpoints.pause", { id: "hook" })).code, "")
      yield* facts.count("endpoint-paused", 1)
      assert.strictEqual(facts.of("endpoint-paused")[0]?.by, "the NATS service, for acme")
    })
  )

  scenario("refuses with the problems of the API, and counts them", () =>
    Effect.gen(function* () {
      const { ask, control } = yield* startService
      const missing = yield* ask("acme", "endpoints.get", { id: "nowhere" })
      assert.deepInclude(missing, { code: "404", description: "There is no such thing" })
      assert.deepInclude(missing.json, { status: 404, type: "urn:petrel:problem:not-found" })
      const wrong = yield* ask("acme", "endpoints.put", {
        id: "hook",
        body: { url: "https://example.com", typs: ["a"] }
      })
      assert.strictEqual(wrong.code, "400")
      assert.match(wrong.json.detail, /typs .*did you mean types/)
      assert.strictEqual((yield* ask("acme", "endpoints.get", "hello")).code, "400")
      assert.match(
        (yield* ask("acme", "endpoints.get", { id: "a", odd: 1 })).json.detail,
        /^odd is not/
      )
      const operators = yield* ask("acme", "system.status")
      assert.deepInclude(operators, { code: "403" })
      assert.match(operators.json.detail, /^the subject does not have the scope operator/)
      assert.strictEqual((yield* ask("_", "system.status")).code, "")
      assert.isArray((yield* ask("_", "endpoints.list")).json.endpoints)
      const stats = yield* control("STATS")
      const counted = stats.json.endpoints.find(
        ({ name }: { name: string }) => name === "endpoints-get"
      )
      assert.deepInclude(counted, { num_requests: 3, num_errors: 3 })
      assert.match(counted.last_error, /^400: /)
    })
  )

  scenario("says what it can do", () =>
    Effect.gen(function* () {
      const { control } = yield* startService
      const { json } = yield* control("INFO")
      const publish = json.endpoints.find(({ name }: { name: string }) => name === "events-publish")
      assert.match(publish.subject, /\.api\.v1\.\*\.events\.publish$/)
      assert.strictEqual(publish.metadata.http, "POST /v1/tenants/{tenant}/events")
      assert.isAbove(json.endpoints.length, 40)
    })
  )

  scenario("shares requests between consoles, and leaves none when one ends", () =>
    Effect.gen(function* () {
      const one = yield* startService
      const counts = Effect.gen(function* () {
        const { connection, names } = yield* natsClients
        const answers = yield* Effect.promise(() =>
          connection.requestMany(`$SRV.PING.${names.subjects.root}`, "", { maxWait: 300 })
        )
        return yield* Effect.promise(async () => {
          let count = 0
          for await (const _ of answers) count++
          return count
        })
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* startService
          assert.strictEqual(yield* counts, 2)
          for (let n = 0; n < 20; n++)
            assert.strictEqual((yield* one.ask("acme", "endpoints.list")).code, "")
        })
      )
      yield* eventually(counts, (count) => count === 1)
      assert.strictEqual((yield* one.ask("acme", "endpoints.list")).code, "")
    })
  )
})
