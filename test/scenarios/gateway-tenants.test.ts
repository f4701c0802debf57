import { assert, describe, it } from "@effect/vitest"
import { jetstream } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { headers } from "@nats-io/transport-node"
import { Effect, Layer } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { run } from "../cli/in-process.ts"
import { quiet as idle } from "../kit/consistency.ts"
import { endpoint, history, testTopology } from "../kit/engine.ts"
import { source, startGateway, stripeEvent, stripeSecret, stripeWebhook } from "../kit/gateway.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"
import { addressFor } from "../kit/tenant-accounts.ts"
import { publisherOf, story, workerOn } from "../kit/tenant-story.ts"

/** Publishes an event with a header. */
const claiming = (
  connection: NatsConnection,
  subject: string,
  [name, value]: readonly [string, string]
) =>
  Effect.tryPromise({
    try: () => {
      const claims = headers()
      claims.set(name, value)
      return jetstream(connection, { timeout: 2_000 }).publish(subject, "{}", { headers: claims })
    },
    catch: (error) => (error instanceof Error ? error : new Error(String(error)))
  })

const refusedTo = Effect.fnUntraced(function* (url: string) {
  const { code, err } = yield* run("ingest", "--listen", "127.0.0.1:0", "--nats", url)
  assert.strictEqual(code, 1)
  return err.join("\n")
})

describe("a gateway", () => {
  it.live("is refused to a tenant's own user, and no publisher can pretend to be one", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startWithAccounts()),
        ({ stop }) => Effect.promise(stop)
      )
      const operator = connectTo({ url: server.url("operator") })
      yield* Effect.provide(init(testTopology), operator)
      assert.match(yield* refusedTo(server.url("acme")), /commands need a user of Petrel's account/)
      const acme = yield* Effect.promise(() => server.as("acme"))
      const forged = yield* Effect.flip(
        claiming(acme, "events.acme.a", [
          "Nats-Stream-Source",
          "PETREL_INTAKE 1 > > petrel.intake.>"
        ])
      )
      assert.match(forged.message, /message stream source header is not allowed/)
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  story("takes webhooks of tenants that have streams of their own", (server) =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ tenant: "globex", url: hook.url, types: [">"] })
      yield* source("stripe", { provider: "stripe", secrets: [stripeSecret] }, "globex")
      yield* workerOn(server)
      const facts = yield* history
      const ingest = yield* Layer.build(
        Layer.fresh(connectTo({ url: addressFor(server, "ingest") }))
      )
      const { post } = yield* Effect.provideContext(startGateway(), ingest)
      const webhook = stripeWebhook(stripeEvent("evt_1"))
      for (let n = 0; n < 2; n++)
        assert.strictEqual((yield* post("/in/globex/stripe", webhook)).status, 200)
      // The publisher's event has the id that the webhook's has, and claims to come by the API.
      const { connection, publish } = yield* publisherOf(server, "globex")
      yield* publish("events.globex.a", "{}", "globex.stripe.evt_1")
      yield* claiming(connection, "events.globex.b", ["petrel-channel", "http"])
      yield* hook.received(3)
      yield* facts.count("delivered", 3)
      const channels = [...facts.of("routed"), ...facts.of("delivered")].flatMap(
        ({ plan, type }) => (plan === undefined ? [] : [`${type}: ${plan.channel}`])
      )
      // A stream of another account is named with a fingerprint.
      const fingerprint = /(?<=PETREL_EVENTS_globex):\w+$/
      assert.sameMembers(
        channels.map((text) => text.replace(fingerprint, "")),
        [
          "stripe.invoice.paid: stream:PETREL_INTAKE",
          "a: stream:PETREL_EVENTS_globex",
          "b: stream:PETREL_EVENTS_globex"
        ]
      )
      yield* idle
      const { judgement } = yield* audit({})
      assert.strictEqual(judgement.verdict, "clean")
      assert.match(
        yield* refusedTo(addressFor(server, "globex")),
        /may not receive answers: commands need a user of Petrel's account/
      )
    })
  )
})
