import { assert, describe } from "@effect/vitest"
import { Effect, Result } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { listQuarantine } from "../../src/intake/quarantine.ts"
import { getSource } from "../../src/intake/source-store.ts"
import { parseNetwork } from "../../src/policy/address.ts"
import type { Missing } from "../../src/reconcile/comparison.ts"
import { openList } from "../../src/reconcile/open-list.ts"
import { type ReconcileOptions, reconcile } from "../../src/reconcile/reconcile.ts"
import { endpoint, eventually, history, nth, worker } from "../kit/engine.ts"
import { startGateway, stripeEvent, stripeSource, stripeWebhook } from "../kit/gateway.ts"
import { providerApi, stripeEvents } from "../kit/provider-api.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const minuteMs = 60_000
const local = [Result.getOrThrow(parseNetwork("127.0.0.0/8"))]
const stripe = { tenant: "acme", id: "stripe" }

/** Events of the last minutes: evt_0 is the newest. */
const events = (count: number, changes: object = {}) => {
  const now = Math.floor(Date.now() / 1_000)
  return Array.from({ length: count }, (_, index) => ({
    ...stripeEvent(`evt_${index}`, changes),
    created: now - 10 * 60 - index
  }))
}

/** Reconciles acme/stripe with an API of this machine. */
const run = Effect.fnUntraced(function* (url: string, options: Partial<ReconcileOptions> = {}) {
  const missing: Array<Missing> = []
  const { source } = yield* getSource(stripe)
  const asked = { since: Date.now() - 60 * minuteMs, until: Date.now() - 5 * minuteMs }
  const list = yield* openList(source, {
    ...{ account: { key: "sk_test_1", url }, asked, networks: local, firstPauseMs: 5 }
  })
  const reconciled = yield* reconcile({
    ...{ source, ...asked, list, alertAbove: 0 },
    onMissing: (one) =>
      Effect.sync(() => {
        missing.push(one)
      }),
    ...options
  })
  return { ...reconciled, missing }
}, Effect.scoped)

const storedIn = (stream: "intake" | "events") =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    const { state } = yield* ask("count", () => jsm.streams.info(names[stream]))
    return state.messages
  })

describe.concurrent("a reconciliation", () => {
  scenario("fetches what never came in, and it is delivered once", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url, types: ["stripe.invoice.>"] })
      yield* worker()
      yield* stripeSource()
      const facts = yield* history
      const sent = events(5)
      const { post } = yield* startGateway()
      for (const place of [0, 2, 4])
        yield* post("/in/acme/stripe", stripeWebhook(nth(sent, place)))
      const api = yield* providerApi(stripeEvents(sent, 2))

      const { found, missing, problem } = yield* run(api.url)
      assert.strictEqual(problem, undefined)
      assert.deepInclude(found, { listed: 5, present: 3, missing: 2, fetched: 2, tooOld: 0 })
      assert.deepStrictEqual(found.missingIds, ["evt_1", "evt_3"])
      assert.deepStrictEqual(
        missing.map(({ became, type }) => [became, type]),
        [
          ["fetched", "invoice.paid"],
          ["fetched", "invoice.paid"]
        ]
      )
      // Pages of 2 of 5 events, one after the other.
      assert.lengthOf(api.requests, 3)
      yield* hook.received(5)
      const ids = hook.requests.map(({ headers }) => headers["webhook-id"])
      assert.sameMembers(ids, [0, 1, 2, 3, 4].map((n) => `acme.stripe.evt_${n}`))
      yield* facts.count("reconciled", 1)
      yield* facts.count("provider-lost", 1)
      assert.deepInclude(facts.of("provider-lost")[0], {
        reason: "2 of 5 events had not come in",
        incoming: { source: "stripe", provider: "stripe" }
      })

      // The provider sends one late, in its webhook's own bytes, and it is listed again.
      const late = yield* post("/in/acme/stripe", stripeWebhook(nth(sent, 1)))
      assert.strictEqual(late.status, 200)
      assert.deepStrictEqual(yield* listQuarantine("acme"), [])
      const again = yield* run(api.url)
      assert.deepInclude(again.found, { listed: 5, present: 5, missing: 0, fetched: 0 })
      yield* facts.count("reconciled", 2)
      assert.lengthOf(facts.of("provider-lost"), 1)
      assert.strictEqual(yield* storedIn("intake"), 5)
      yield* eventually(storedIn("events"), (count) => count === 5)
      assert.lengthOf(hook.requests, 5)
    })
  )
})
