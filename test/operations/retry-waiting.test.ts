import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { deliveryHeaders, scheduleHeaders } from "../../src/domain/delivery.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { retryWaiting } from "../../src/operations/retries/retry-waiting.ts"
import { deliveryOf } from "../delivery/made-deliveries.ts"
import { endpoint } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** More than are counted for each endpoint. */
const many = 5_600

describe.concurrent("a retry of all that waits for a tenant", () => {
  scenario("asks no endpoint for which nothing waits, however many schedules others have", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      yield* endpoint({ id: "hook", url: "http://127.0.0.1:9/" })
      const index = partitionOf("acme", "hook", 2)
      const to = { tenant: "umbrella", endpoint: "other" }
      const at = Date.now() + 3_600_000
      const delivery = deliveryOf({ ...to, deadline: at + 60_000 })
      const target = names.subjects.delivery(index, to.tenant, to.endpoint)
      yield* Effect.forEach(
        Array.from({ length: many }, (_, n) => String(n)),
        (id) =>
          publisher.publish(names.subjects.schedule(index, id), "{}", [
            ...deliveryHeaders(delivery, id),
            ...scheduleHeaders(at, target)
          ]),
        { concurrency: 100, discard: true }
      )
      // No worker runs: whoever asked one about the endpoint would fail.
      const { endpoints } = yield* retryWaiting({ tenant: "acme" }, { by: "ana" })
      assert.strictEqual(endpoints, 0)
    })
  )
})
