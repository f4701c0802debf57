import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import { allFacts, quiet } from "../kit/consistency.ts"
import { endpoint, eventually, history, publishTo, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ testTimeout: 60_000 })

const { longScenario, scenario } = onServer()

const endpoints = (tenant: string, count: number, url: string) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => `e${String(index).padStart(4, "0")}`),
    (id) => endpoint({ tenant, id, url: `${url}/${id}` }),
    { concurrency: 32, discard: true }
  )

/** Returns the number of deliveries in queues that no owner has taken. */
const untaken = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const consumers = yield* Effect.forEach([0, 1], (partition) =>
    ask("look at a queue", () =>
      jsm.consumers.info(names.deliveries(partition), names.deliverConsumer)
    )
  )
  return consumers.reduce((sum, { num_pending }) => sum + num_pending, 0)
})

describe.concurrent("events with many deliveries", () => {
  scenario("fill the queues no faster than they are emptied, and hold up nobody else", () =>
    Effect.gen(function* () {
      const seen = yield* history
      const { requests, url } = yield* receiver()
      yield* endpoints("acme", 400, url)
      yield* endpoint({ tenant: "globex", id: "hook", url: `${url}/globex` })
      for (let count = 0; count < 12; count++) yield* publishTo("acme.invoice.paid")
      const router = yield* worker({ id: "routes", roles: ["router"] })
      // Six have room, and nobody empties the queues.
      yield* seen.planned(6)
      yield* eventually(untaken, (count) => count >= 2_400)
      yield* publishTo("globex.invoice.paid")
      yield* seen.until((facts) =>
        facts.some(({ kind, tenant }) => kind === "routed" && tenant === "globex")
      )
      // Not all others before it: where nobody empties the queues, there is a turn every 2 s.
      assert.isBelow(seen.plans().length, 1 + 12)
      const owner = yield* worker({ roles: ["deliver"] })
      yield* seen.count("delivered", 12 * 400 + 1)
      yield* quiet
      yield* router.stop
      yield* owner.stop
      assert.lengthOf(requests, 12 * 400 + 1)
    })
  )

  longScenario("go to each endpoint once though their router dies between two parts", (place) =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver()
      yield* endpoints("acme", 2_100, url)
      yield* publishTo("acme.invoice.paid")
      yield* crashAt(place, "plan-stored", 2)
      const before = requests.length
      assert.isAbove(before, 0)
      const second = yield* worker({ id: "second" })
      yield* quiet
      yield* second.stop
      const delivered = (yield* allFacts).filter(({ kind }) => kind === "delivered")
      assert.lengthOf(delivered, 2_100)
      assert.strictEqual(new Set(delivered.map(({ endpoint }) => endpoint)).size, 2_100)
      // What was recorded is not sent again; what was under way as it died may be.
      assert.isAtMost(requests.length, 2_100 + 64)
    })
  )
})
