import { assert, describe } from "@effect/vitest"
import { Effect, Result } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { checkAccount } from "../../src/intake/source-account.ts"
import { getSource } from "../../src/intake/source-store.ts"
import { parseNetwork } from "../../src/policy/address.ts"
import { DeliveryLog } from "../../src/projection/delivery-log.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { reconcile } from "../../src/reconcile/reconcile.ts"
import { openList } from "../../src/reconcile/walk.ts"
import { startConsole } from "../kit/console.ts"
import { caughtUp, directory, optionsOf } from "../kit/delivery-log.ts"
import { endpoint, eventually, history, publish, secret, worker } from "../kit/engine.ts"
import { source, startGateway } from "../kit/gateway.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("a reconciliation with a Petrel that sends", () => {
  scenario("has it send again, signed, what it delivered and never came in", (place) =>
    Effect.gen(function* () {
      // It answers 200, and keeps nothing.
      const careless = yield* receiver()
      yield* endpoint({ url: careless.url, types: ["invoice.>"] })
      const facts = yield* history
      yield* worker()
      for (const id of ["acme.one", "acme.two"])
        yield* publish("invoice.paid", '{"n":1}', { "Nats-Msg-Id": id })
      yield* facts.count("delivered", 2)
      const log = yield* serveProjection(optionsOf(place, yield* directory))
      yield* caughtUp(log.status)
      const { ask, token, url } = yield* Effect.provideService(startConsole(), DeliveryLog, log)

      const name = { tenant: "globex", id: "upstream" }
      yield* source(name.id, { provider: "petrel", secrets: [secret] }, name.tenant)
      const gateway = yield* startGateway()
      const moved = yield* ask("/v1/tenants/acme/endpoints/hook", {
        method: "PATCH",
        token: yield* token(),
        body: { url: `http://127.0.0.1:${gateway.port}/in/globex/upstream` }
      })
      assert.strictEqual(moved.status, 200, moved.text)

      const apiKey = yield* token({ scopes: ["deliveries:read", "replay:write"] })
      const { source: stored } = yield* getSource(name)
      const account = checkAccount({ ...stored, apiKey, apiUrl: url, webhookId: "acme/hook" }, true)
      const networks = [Result.getOrThrow(parseNetwork("127.0.0.1"))]
      const run = Effect.gen(function* () {
        const asked = { since: Date.now() - 60_000, until: Date.now() + 1_000 }
        const list = yield* openList(Result.getOrThrow(account), { asked, networks })
        return yield* reconcile({ source: stored, ...asked, list, alertAbove: 0 })
      }).pipe(Effect.scoped)
      const first = yield* run
      assert.strictEqual(first.problem, undefined)
      assert.deepInclude(first.found, { listed: 2, present: 0, missing: 2, fetched: 0, asked: 2 })
      const { ask: request, jsm, names } = yield* natsClients
      const came = request("count", () => jsm.streams.info(names.intake))
      yield* eventually(came, ({ state }) => state.messages === 2)
      assert.strictEqual(gateway.counted("globex/upstream", "taken"), 2)
      const second = yield* run
      assert.deepInclude(second.found, { listed: 2, present: 2, missing: 0, asked: 0 })
    })
  )
})
