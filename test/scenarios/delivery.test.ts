import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { afterAll, beforeAll } from "vitest"
import {
  endpoint,
  eventually,
  history,
  installation,
  nth,
  publish,
  secret,
  waitingMessages,
  worker
} from "../kit/engine.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

describe("an event published to NATS", () => {
  it.live("arrives, signed, at the endpoint that wants it, and is told of in the history", () =>
    installation(server).run(
      Effect.gen(function* () {
        const { requests, received, url } = yield* receiver()
        yield* endpoint({ url: `${url}/hooks` })
        const facts = yield* history
        yield* worker()
        const { seq } = yield* publish("invoice.paid", '{"total":42}', { "Nats-Msg-Id": "acme-1" })
        yield* received(1)
        const request = nth(requests, 0)
        assert.strictEqual(request.path, "/hooks")
        assert.strictEqual(request.body.toString(), '{"total":42}')
        assert.strictEqual(request.headers["webhook-id"], "acme-1")
        assert.strictEqual(request.headers["petrel-attempt"], "1")
        new Webhook(secret).verify(
          request.body.toString(),
          request.headers as Record<string, string>
        )
        yield* facts.count("delivered", 1)
        assert.deepStrictEqual(
          nth(facts.plans(), 0).plan?.endpoints.map(({ id }) => id),
          ["hook"]
        )
        const delivered = nth(facts.of("delivered"), 0)
        assert.strictEqual(delivered.eventSeq, seq)
        assert.strictEqual(delivered.status, 200)
        yield* eventually(waitingMessages, (count) => count === 0)
        // The history is known to take facts: now one tells that it went to one endpoint, and arrived.
        const [plan, end] = facts.facts
        yield* publish("invoice.sent")
        yield* facts.count("delivered", 2)
        assert.deepStrictEqual(
          facts.facts.map(({ kind, plan }) => [kind, plan !== undefined]),
          [
            [plan?.kind, true],
            [end?.kind, false],
            ["delivered", true]
          ]
        )
      })
    )
  )
})
