import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { readValues, writeValue } from "../../src/broker/values.ts"
import { readJobs } from "../../src/operations/jobs/job-store.ts"
import { maxKeys } from "../../src/operations/run-once.ts"
import type { Answer, TestConsole } from "../kit/console.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../kit/engine.ts"
import { gate } from "../kit/gate.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const acme = "/v1/tenants/acme"

/** Asks for something with a key. */
const asking =
  ({ ask }: Pick<TestConsole, "ask">, token: string) =>
  (path: string, key: string, body?: unknown) =>
    ask(path, { method: "POST", token, body, headers: { "idempotency-key": key } })

const isReplayed = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true"

/** What the bucket knows of keys. */
const stored = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.jobs, "once.>"))
  return values.map(({ key, text }) => ({ key, text }))
})

/** Leaves the only key as a console does that is killed before it has noted the answer. */
const forgetAnswer = Effect.gen(function* () {
  const { names } = yield* Broker
  const { key, text } = nth(yield* stored, 0)
  const { answer: _, ...claim } = JSON.parse(text)
  yield* writeValue(names.buckets.jobs, key, JSON.stringify(claim), { ttl: 60_000 })
})

describe.concurrent("a request with an Idempotency-Key", () => {
  scenario("is carried out once, of whichever console it is asked", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url, types: ["a"] })
      const facts = yield* history
      yield* worker()
      yield* publish("a", "{}", { "Nats-Msg-Id": "acme.x" })
      yield* facts.count("delivered", 1)
      const scope = yield* Scope.make()
      const first = yield* startConsole().pipe(Scope.provide(scope))
      const token = yield* first.token()
      const resend = `${acme}/deliveries/acme.x.hook/resend`
      const test = `${acme}/endpoints/hook/test`
      const jobs = `${acme}/redeliveries`
      const send = asking(first, token)
      const resent = yield* send(resend, "k1")
      assert.strictEqual(resent.status, 202, resent.text)
      assert.isFalse(isReplayed(resent))
      const tested = yield* send(test, "k1", { type: "a", body: "1" })
      assert.strictEqual(tested.status, 200, tested.text)
      const job = yield* send(jobs, "k1", { all: true })
      assert.strictEqual(job.status, 202, job.text)
      // It ends: what it knew is gone.
      yield* Scope.close(scope, Exit.void)

      const other = yield* startConsole()
      yield* eventually(other.ask(`${acme}/endpoints`, { token }), ({ status }) => status === 200)
      const again = asking(other, token)
      for (const [path, before, body] of [
        [resend, resent, undefined],
        [test, tested, { body: "1", type: "a" }],
        [jobs, job, { all: true }]
      ] as const) {
        const repeated = yield* again(path, "k1", body)
        assert.deepStrictEqual(
          [repeated.status, repeated.text, isReplayed(repeated)],
          [before.status, before.text, true],
          path
        )
        assert.strictEqual(repeated.headers.get("location"), before.headers.get("location"))
      }
      assert.lengthOf(facts.of("replayed"), 1)
      yield* hook.received(3)
      assert.lengthOf(
        hook.requests.filter(({ headers }) => headers["petrel-test"] === "true"),
        1
      )
      assert.lengthOf(yield* readJobs("acme"), 1)

      const mixed = yield* again(jobs, "k1", { endpoint: "hook" })
      assert.strictEqual(mixed.status, 422, mixed.text)
      assert.strictEqual(mixed.json.type, "urn:petrel:problem:key-reused")
      assert.strictEqual((yield* again(jobs, "k2", { all: true })).status, 202)
      assert.lengthOf(yield* readJobs("acme"), 2)
      // A token of its own, with other scopes perhaps, has keys of its own.
      const theirs = yield* asking(other, yield* other.token())(jobs, "k1", { endpoint: "hook" })
      assert.strictEqual(theirs.status, 202, theirs.text)
      assert.strictEqual((yield* again(jobs, "", { all: true })).status, 400)
      assert.strictEqual((yield* again(jobs, "k".repeat(256), { all: true })).status, 400)
    })
  )

  scenario("makes a token once, whose text is kept nowhere", () =>
    Effect.gen(function* () {
      const { token: make, ...console } = yield* startConsole()
      const send = asking(console, yield* make())
      const body = { scopes: ["endpoints:read"], name: "ours" }
      const made = yield* send(`${acme}/tokens`, "k", body)
      assert.strictEqual(made.status, 201, made.text)
      const repeated = yield* send(`${acme}/tokens`, "k", body)
      const { token, ...shown } = made.json
      assert.match(String(token), /^ptl_/)
      assert.deepStrictEqual([repeated.status, repeated.json], [200, shown])
      const values = yield* stored
      assert.lengthOf(values, 1)
      assert.include(values[0]?.text, String(shown.id))
      assert.notInclude(JSON.stringify(values), String(token).slice(-43))
    })
  )

  scenario("is refused while the first one is carried out", () =>
    Effect.gen(function* () {
      const hook = yield* gate
      yield* endpoint({ url: hook.url, types: ["none"] })
      yield* worker()
      const { token: make, ...console } = yield* startConsole()
      const send = asking(console, yield* make())
      const path = `${acme}/endpoints/hook/test`
      const first = yield* Effect.forkScoped(send(path, "k"))
      yield* eventually(
        Effect.sync(() => hook.now.count),
        (count) => count === 1
      )
      const second = yield* send(path, "k")
      assert.strictEqual(second.status, 409, second.text)
      assert.strictEqual(second.headers.get("retry-after"), "1")
      yield* hook.open
      const { status, text } = yield* Fiber.join(first)
      assert.strictEqual(status, 200, text)
      assert.strictEqual((yield* send(path, "k")).text, text)
    })
  )

  scenario("may be repeated after it has failed, and goes on where its console died", () =>
    Effect.gen(function* () {
      const { token: make, ...console } = yield* startConsole()
      const send = asking(console, yield* make())
      const replays = `${acme}/replays`
      assert.strictEqual((yield* send(replays, "k", { endpoint: "hook" })).status, 404)
      assert.isEmpty(yield* stored)
      yield* endpoint()
      const job = yield* send(replays, "k", { endpoint: "hook" })
      assert.strictEqual(job.status, 202, job.text)
      yield* forgetAnswer
      const again = yield* send(replays, "k", { endpoint: "hook" })
      assert.deepStrictEqual([again.status, again.json.id], [202, job.json.id])
      assert.lengthOf(yield* readJobs("acme"), 1)
    })
  )

  scenario("adds one endpoint under an id that is made, also where its console died", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const send = asking({ ask }, token)
      const endpoints = `${acme}/endpoints`
      const settings = { url: "https://example.com/hooks" }
      const made = yield* send(endpoints, "k", settings)
      assert.strictEqual(made.status, 201, made.text)
      yield* forgetAnswer
      const again = yield* send(endpoints, "k", settings)
      const { secret, ...shown } = made.json
      assert.match(String(secret), /^whsec_/)
      assert.strictEqual(again.status, 201, again.text)
      assert.deepStrictEqual(again.json, shown)
      assert.lengthOf((yield* ask(endpoints, { token })).json.endpoints as Array<unknown>, 1)
      assert.notInclude(JSON.stringify(yield* stored), String(secret))
    })
  )

  scenario("is refused where its tenant has given as many keys as are known at once", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      yield* Effect.forEach(
        Array.from({ length: maxKeys }, (_, n) => n),
        (n) => writeValue(names.buckets.jobs, `once.acme.${n}`, "{}", { ttl: 60_000 }),
        { concurrency: 64, discard: true }
      )
      const { refused, token: make, ...console } = yield* startConsole()
      const body = { endpoint: "hook" }
      yield* endpoint()
      yield* endpoint({ tenant: "globex" })
      const full = yield* asking(console, yield* make())(`${acme}/replays`, "k", body)
      assert.strictEqual(full.status, 503, full.text)
      assert.strictEqual(full.headers.get("retry-after"), "60")
      const samples = refused.family().samples
      assert.include(JSON.stringify(samples), "idempotency-keys")
      const globex = asking(console, yield* make({ tenant: "globex" }))
      assert.strictEqual((yield* globex("/v1/tenants/globex/replays", "k", body)).status, 202)
    })
  )
})
