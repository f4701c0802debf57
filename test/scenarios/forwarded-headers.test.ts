import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  publish,
  worker,
  workersApart
} from "../kit/engine.ts"
import type { Received, Script } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer, outage } from "../kit/scenario.ts"
import { sendAgain } from "./redelivering.ts"
import { replayTo } from "./replaying.ts"

const { scenario } = onServer()

const sent = { "Nats-Msg-Id": "e1", "X-Correlation-Id": "order-7", "x-region": "eu", "x-not": "n" }

const forwardedIn = ({ headers }: Received) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-")))

const at = (requests: ReadonlyArray<Received>, path: string) =>
  requests.filter((request) => request.path === path).map(forwardedIn)

describe.concurrent("a publisher's header that an endpoint or its tenant names", () => {
  scenario("comes with each attempt, after retries, a redelivery and a replay", () =>
    Effect.gen(function* () {
      const script: { now: Script } = { now: byAttempt(503, 503, 400) }
      const hook = yield* receiver({
        answer: (request, response) =>
          typeof script.now === "function" && request.path === "/named"
            ? script.now(request, response)
            : { status: 200 }
      })
      yield* setTenant("acme", { forwardHeaders: { "X-Region": true } }, "ana")
      yield* endpoint({
        id: "named",
        url: `${hook.url}/named`,
        forwardHeaders: ["x-correlation-id"]
      })
      yield* endpoint({ id: "plain", url: `${hook.url}/plain`, headers: { "X-Region": "own" } })
      const facts = yield* history
      yield* worker()
      yield* publish("order.paid", "{}", sent)
      yield* facts.count("dead-lettered", 1)
      const both = { "x-correlation-id": "order-7", "x-region": "eu" }
      assert.deepStrictEqual(at(hook.requests, "/named"), [both, both, both])

      script.now = byAttempt(200)
      assert.strictEqual((yield* sendAgain()).begun, 1)
      yield* facts.until(
        (all) =>
          all.filter((one) => one.endpoint === "named" && one.kind === "delivered").length > 0
      )
      assert.strictEqual((yield* replayTo("named")).begun, 1)
      yield* facts.until(
        (all) =>
          all.filter((one) => one.endpoint === "named" && one.kind === "delivered").length > 1
      )
      assert.deepStrictEqual(at(hook.requests, "/named"), [both, both, both, both, both])
      // A header of its own keeps its value, and nothing else comes.
      assert.deepStrictEqual(at(hook.requests, "/plain"), [{ "x-region": "own" }])
      const about = facts.facts.filter(({ event }) => event === "e1")
      assert.isAtLeast(about.length, 7)
      // The tenant's names come first.
      assert.deepStrictEqual(new Set(about.map(({ correlation }) => correlation)), new Set(["eu"]))
    })
  )

  scenario("comes through a queue and a backlog, and not across a redirect", () =>
    Effect.gen(function* () {
      const other = yield* receiver()
      const hook = yield* receiver({
        answer: ({ path }) =>
          path === "/moved"
            ? { status: 307, headers: { location: `${other.url}/there` } }
            : { status: 200 }
      })
      const forwardHeaders = ["x-correlation-id"]
      const waits = { tenant: "acme", endpoint: "hook" }
      yield* endpoint({ id: "hook", url: `${hook.url}/hook`, forwardHeaders })
      yield* endpoint({
        id: "moved",
        url: `${hook.url}/moved`,
        forwardHeaders,
        redirectsTo: [other.url]
      })
      yield* pauseEndpoint(waits, undefined, "ana")
      yield* workersApart()
      yield* publish("order.paid", "{}", sent)
      yield* eventually(backlogged, (waiting) => waiting === 1)
      yield* other.received(1)
      yield* resumeEndpoint(waits, "ana")
      yield* hook.received(2)
      const found = { "x-correlation-id": "order-7" }
      assert.deepStrictEqual(hook.requests.map(forwardedIn), [found, found])
      assert.deepStrictEqual(other.requests.map(forwardedIn), [{}])
    })
  )

  outage("is dropped where HTTP allows no such value, which is said once", (_, __, log) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url, forwardHeaders: ["x-correlation-id"] })
      yield* worker()
      for (const id of ["1", "2", "3"])
        yield* publish("order.paid", "{}", { "Nats-Msg-Id": id, "x-correlation-id": "€" })
      yield* publish("order.paid", "{}", { "Nats-Msg-Id": "4", "x-correlation-id": "fine" })
      yield* hook.received(4)
      assert.deepStrictEqual(
        hook.requests.flatMap((request) => Object.values(forwardedIn(request))),
        ["fine"]
      )
      assert.strictEqual(log.count("a header is not forwarded"), 1)
    })
  )
})
