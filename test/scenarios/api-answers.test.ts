import { assert, describe } from "@effect/vitest"
import { PermissionViolationError } from "@nats-io/transport-node"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import type { TokenScope } from "../../src/operations/token.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, eventually, history, publish, quickRetry, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** What receivers repeat of what they were sent. */
const echo = "card 4111-number"
const reading: [TokenScope, ...Array<TokenScope>] = [
  "endpoints:read",
  "endpoints:write",
  "deliveries:read",
  "dead:read"
]

describe.concurrent("what a receiver answered", () => {
  scenario("is told to nobody who may not see what it was sent, wherever it is asked for", () =>
    Effect.gen(function* () {
      const { ask, token: make, url } = yield* startConsole()
      const hook = yield* receiver({ answer: { status: 400, body: `you sent: ${echo}` } })
      const leading = yield* receiver({
        answer: { status: 307, headers: { location: `${hook.url}/${echo.replace(" ", "-")}` } }
      })
      const retry = quickRetry({ maxAttempts: 1 })
      yield* endpoint({ url: hook.url, retry })
      yield* endpoint({ id: "leading", url: leading.url, retry })
      const facts = yield* history
      yield* worker()
      const [blind, seeing] = [
        yield* make({ scopes: reading }),
        yield* make({ scopes: [...reading, "payloads:read"] })
      ]
      /** Follows failures, and returns what was heard. */
      const follow = (token: string) =>
        Effect.gen(function* () {
          const response = yield* Effect.promise(() =>
            fetch(`${url}/v1/tenants/acme/live`, { headers: { authorization: `Bearer ${token}` } })
          )
          const reader = response.body?.getReader()
          let heard = ""
          const more = Effect.promise(async () => {
            heard += Buffer.from((await reader?.read())?.value ?? []).toString()
            return heard
          })
          yield* eventually(more, (text) => text.includes("following"))
          return eventually(more, (text) => text.split("dead-lettered").length > 2)
        })
      const [heardBlind, heardSeeing] = [yield* follow(blind), yield* follow(seeing)]
      yield* publish("invoice.paid", echo, { "Nats-Msg-Id": "acme.x" })
      yield* facts.count("dead-lettered", 2)
      const dead = facts.of("dead-lettered").map((fact) => fact.dead)
      const paths = [
        "/deliveries/acme.x.hook",
        "/deliveries/acme.x.leading",
        "/events/acme.x",
        "/dead-letters",
        ...dead.map((number) => `/dead-letters/${number}`),
        "/endpoints",
        ...["hook", "leading"].flatMap((id) => [`/endpoints/${id}`, `/endpoints/${id}/diagnosis`]),
        "/alerts"
      ]
      const shown: Array<string> = []
      for (const path of paths) {
        const [without, withThem] = yield* Effect.all(
          [blind, seeing].map((token) => ask(`/v1/tenants/acme${path}`, { token }))
        )
        assert.strictEqual(without?.status, 200, path)
        assert.notMatch(without?.text ?? "", /4111-number/, path)
        if (withThem?.text.includes("4111-number")) shown.push(path)
      }
      assert.includeMembers(shown, [
        "/deliveries/acme.x.hook",
        ...dead.map((number) => `/dead-letters/${number}`),
        "/endpoints/hook/diagnosis"
      ])
      const test = (token: string, id: string) =>
        ask(`/v1/tenants/acme/endpoints/${id}/test`, { method: "POST", token })
      for (const id of ["hook", "leading"]) {
        const tested = yield* test(blind, id)
        assert.oneOf(tested.json.status, [400, 307])
        assert.notMatch(tested.text, /4111-number/)
        assert.match((yield* test(seeing, id)).text, /4111-number/)
      }
      assert.notMatch(yield* heardBlind, /4111-number/)
      assert.match(yield* heardSeeing, /4111-number/)
    })
  )
})

describe.concurrent("advice over HTTP", () => {
  scenario("names no commands: whoever reads it there has none", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const operator = yield* make({ tenant: "*", scopes: ["operator"] })
      const token = yield* make({ scopes: ["endpoints:read", "endpoints:write"] })
      yield* endpoint({ url: "http://127.0.0.1:1", maxInFlight: 3 })
      const before = yield* ask("/v1/status", { token: operator })
      const { text } = yield* ask("/v1/tenants/acme/endpoints/hook/diagnosis", { token })
      assert.match(text, /nobody|no worker/)
      yield* worker()
      const hurried = ask("/v1/tenants/acme/endpoints/hook/retry-now", { token, method: "POST" })
      const { json } = yield* eventually(hurried, ({ status }) => status === 200)
      assert.deepStrictEqual(json.pace, ["at most 3 requests at once"])
      assert.deepInclude(before.json.problems, {
        code: "no-worker",
        text: "no worker is running, so nothing is delivered"
      })
      assert.notMatch(before.text + text, /`petrel | --[a-z]/)
    })
  )

  scenario("is to read the log where the broker forbids what a request needs", () =>
    Effect.gen(function* () {
      const cause = new PermissionViolationError("Permissions Violation", "publish", "x")
      const altered = yield* alteredBroker(({ names, streamInfo }) => ({
        streamInfo: (operation, stream, options) =>
          stream === names.dead
            ? Effect.fail(new BrokerError({ operation, cause }))
            : streamInfo(operation, stream, options)
      }))
      const { ask, token: make } = yield* Effect.provideService(startConsole(), Broker, altered)
      const { json, status } = yield* ask("/v1/tenants/acme/dead-letters", { token: yield* make() })
      assert.strictEqual(status, 503)
      assert.match(String(json.detail), /^the broker does not let this console .* its log says/)
    })
  )
})
