/* Deliveries that wait in the backlogs. */
import { Clock, Effect } from "effect"
import { natsClients } from "../src/broker/clients.ts"
import { connectTo } from "../src/broker/connection.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import { readKnownFact, writeWatermark } from "../src/delivery/recovery/takeover.ts"
import type { Delivery } from "../src/domain/delivery.ts"
import { deliveryHeaders, firstRound, untried } from "../src/domain/delivery.ts"
import { partitionOf } from "../src/domain/names.ts"
import { countBacklogs } from "../src/history/backlog-count.ts"
import type { Ground } from "./ground.ts"
import { storeAll } from "./rig.ts"

/**
 * Maximum number of deliveries that wait elsewhere: the retries of those attempted while the
 * endpoint was down.
 */
export const elsewhere = 100

const { partitions } = defaultTopology

const waiting = Effect.gen(function* () {
  const all = Array.from({ length: partitions }, (_, index) => index)
  const counts = yield* Effect.forEach(all, (partition) => countBacklogs(partition))
  return counts.flatMap((count) => [...count.values()]).reduce((sum, count) => sum + count, 0)
})

const day = 24 * 60 * 60 * 1000

/**
 * Stores deliveries in backlogs, as a worker that has run for a while leaves them. No worker may
 * run.
 */
export const storeWaiting = Effect.fnUntraced(function* (
  count: number,
  choose: (number: number) => Pick<Delivery, "tenant" | "endpoint">
) {
  const { names, publisher } = yield* natsClients
  const began = yield* Clock.currentTimeMillis
  yield* storeAll(count, (number) => {
    const { endpoint, tenant } = choose(number)
    const delivery: Delivery = {
      ...{
        tenant,
        endpoint,
        event: `evt_${number}`,
        eventSeq: number + 1,
        eventAt: 0,
        type: "invoice.paid"
      },
      ...{ round: firstRound, began, deadline: began + 3 * day, revision: 1 },
      ...{ generation: "bench", content: {}, progress: untried }
    }
    return {
      subject: names.subjects.backlog(partitionOf(tenant, endpoint, partitions), tenant, endpoint),
      body: '{"invoice":42}',
      headers: deliveryHeaders(delivery, `waiting.${number}`)
    }
  })
  const { endpoint, tenant } = choose(0)
  const fact = names.subjects.fact(tenant, endpoint, "ok", "endpoint-paused")
  const { seq } = yield* publisher.publish(fact, "{}", [])
  const floor = yield* readKnownFact(seq)
  for (let partition = 0; partition < partitions; partition++)
    yield* writeWatermark(partition, floor)
})

/**
 * Waits until `atLeast` deliveries are in backlogs, except for up to {@link elsewhere} retries.
 * Returns their number.
 */
export const untilWaiting = ({ broker }: Pick<Ground, "broker">, atLeast: number) =>
  waiting.pipe(
    Effect.tap(Effect.sleep("100 millis")),
    Effect.repeat({ while: (count) => count < atLeast - elsewhere }),
    Effect.provide(connectTo(broker))
  )
