import { assert, describe } from "@effect/vitest"
import { verify as verifyGithub } from "@octokit/webhooks-methods"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { isClean, quiet } from "../kit/consistency.ts"
import { endpoint, history, nth, publish, quickRetry, secret, worker } from "../kit/engine.ts"
import { assertNoneTooEarly, attempts, waits } from "../kit/outcomes.ts"
import type { Receiver } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { sendAgain } from "./redelivering.ts"

const { scenario } = onServer()

const minute = 60_000

/** The requests of one event type. */
const ofType = ({ requests, ...rest }: Receiver, type: string): Receiver => ({
  ...rest,
  requests: requests.filter(({ headers }) => headers["webhook-event-type"] === type)
})

describe.concurrent("an endpoint with a retry policy for some event types", () => {
  scenario("follows for each event the ladder, verdicts and window of its type", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({
        answer: ({ headers }) => ({
          status: headers["webhook-event-type"] === "invoice.void" ? 409 : 500
        })
      })
      yield* endpoint({
        url: hook.url,
        retry: quickRetry({ maxAttempts: 4, window: "30 minutes" }),
        retryFor: {
          "invoice.>": quickRetry({
            backoff: { kind: "list", delays: ["40 millis", "120 millis"] },
            ...{ maxAttempts: 3, window: "20 minutes", statuses: { "409": "retry" } }
          })
        }
      })
      const facts = yield* history
      yield* worker()
      const types = ["order.sent", "invoice.paid", "invoice.void"]
      for (const type of types) yield* publish(type, "[1]", { "Nats-Msg-Id": `acme-${type}` })
      yield* facts.count("dead-lettered", types.length)

      const ladders = types.map((type) => {
        const failed = facts.of("attempt-failed").filter((fact) => fact.type === type)
        const made = ofType(hook, type)
        assertNoneTooEarly(made, failed)
        assert.deepStrictEqual(
          attempts(made),
          failed.map(({ attempt }) => attempt)
        )
        return [type, made.requests.length, waits(failed)] as const
      })
      assert.deepStrictEqual(ladders, [
        ["order.sent", 4, [50, 50, 50]],
        ["invoice.paid", 3, [40, 120]],
        ["invoice.void", 3, [40, 120]]
      ])
      const windows = () =>
        [...facts.of("dead-lettered"), ...facts.of("redelivered")].map(
          ({ at, deadline = 0, eventAt, kind, round, type }) => [
            `${type} ${round === "0" ? "at first" : "again"}`,
            deadline - (kind === "redelivered" ? at : (eventAt ?? 0))
          ]
        )
      assert.sameDeepMembers(windows(), [
        ["order.sent at first", 30 * minute],
        ["invoice.paid at first", 20 * minute],
        ["invoice.void at first", 20 * minute]
      ])
      yield* quiet
      yield* isClean

      hook.answer({ status: 200 })
      yield* sendAgain()
      yield* facts.count("delivered", types.length)
      assert.includeDeepMembers(windows(), [
        ["order.sent again", 30 * minute],
        ["invoice.paid again", 20 * minute],
        ["invoice.void again", 20 * minute]
      ])
      yield* quiet
      yield* isClean
    })
  )
})

describe.concurrent("a request", () => {
  scenario("says the event's type, by the names that the endpoint has for its headers", () =>
    Effect.gen(function* () {
      const usual = yield* receiver()
      const named = yield* receiver()
      const github = yield* receiver()
      yield* endpoint({ id: "usual", url: usual.url })
      const headerNames = { id: "x-event", type: "x-topic", timestamp: "x-sent-at" }
      yield* endpoint({ id: "named", url: named.url, headerNames })
      const key = "0123456789"
      const secrets = [{ value: key, createdAt: 0 }]
      yield* endpoint({ id: "github", url: github.url, sign: "github", secrets })
      const facts = yield* history
      yield* worker()
      yield* publish("invoice.paid", "[1]", { "Nats-Msg-Id": "acme-1" })
      yield* facts.count("delivered", 3)

      const [first, renamed, last] = [usual, named, github].map(({ requests }) => nth(requests, 0))
      assert.isDefined(first)
      assert.isDefined(renamed)
      assert.isDefined(last)
      assert.strictEqual(first.headers["webhook-event-type"], "invoice.paid")
      new Webhook(secret).verify("[1]", first.headers as Record<string, string>)

      assert.deepInclude(renamed.headers, { "x-event": "acme-1", "x-topic": "invoice.paid" })
      for (const name of ["id", "event-type", "timestamp"])
        assert.notProperty(renamed.headers, `webhook-${name}`)
      new Webhook(secret).verify("[1]", {
        "webhook-id": String(renamed.headers["x-event"]),
        "webhook-timestamp": String(renamed.headers["x-sent-at"]),
        "webhook-signature": String(renamed.headers["webhook-signature"])
      })

      assert.deepInclude(last.headers, {
        "x-github-event": "invoice.paid",
        "x-github-delivery": "acme-1",
        "webhook-id": "acme-1"
      })
      const signature = String(last.headers["x-hub-signature-256"])
      assert.isTrue(yield* Effect.promise(() => verifyGithub(key, "[1]", signature)))
    })
  )
})
