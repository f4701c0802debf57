import { assert, describe } from "@effect/vitest"
import { Effect, Semaphore } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import { sweepUnavailable } from "../../../src/delivery/sweep/sweep.ts"
import { deliveryHeaders } from "../../../src/domain/delivery.ts"
import { partitionOf } from "../../../src/domain/names.ts"
import { Directory } from "../../../src/endpoints/directory.ts"
import { alteredBroker } from "../../kit/altered-broker.ts"
import { eventually } from "../../kit/engine.ts"
import { onServer } from "../../kit/scenario.ts"
import { deliveryOf, directoryOf, makeMemory } from "../made-deliveries.ts"

const { scenario } = onServer()

const partitions = 2
const endpoints = Array.from({ length: 50 }, (_, n) => `hook-${n}`).filter(
  (id) => partitionOf("acme", id, partitions) === 0
)

describe.concurrent("endpoints that are removed together", () => {
  scenario("have what waits for them ended by one look at all schedules", () =>
    Effect.gen(function* () {
      const { names, publisher } = yield* natsClients
      for (const endpoint of endpoints)
        yield* publisher.publish(
          names.subjects.delivery(0, "acme", endpoint),
          "{}",
          deliveryHeaders(deliveryOf({ endpoint, deadline: Date.now() + 60_000 }), endpoint)
        )
      const reads: Array<string> = []
      const broker = yield* alteredBroker(({ batch }) => ({
        batch: (...of) => {
          reads.push(of[1])
          return batch(...of)
        }
      }))
      let tell: (tenant: string, endpoint: string) => void = () => {}
      const directory = directoryOf({
        standing: () => Effect.succeed({ _tag: "Removed" }),
        onUnavailable: (listener) => {
          tell = listener
          return () => {}
        }
      })
      const ended = new Set<string>()
      const turn = yield* Semaphore.make(1)
      const sweeping = sweepUnavailable(
        {
          memory: { ...makeMemory(), index: 0, stream: names.deliveries(0) },
          endWaiting: ({ delivery }) => Effect.sync(() => ended.add(delivery.endpoint))
        },
        partitions,
        turn
      ).pipe(Effect.provideService(Broker, broker), Effect.provideService(Directory, directory))
      // The sweep at the start waits for its turn while they are removed.
      yield* turn.withPermit(
        Effect.gen(function* () {
          yield* Effect.forkScoped(sweeping, { startImmediately: true })
          for (const endpoint of endpoints) tell("acme", endpoint)
        })
      )
      yield* eventually(
        Effect.sync(() => ended.size),
        (count) => count === endpoints.length
      )
      // Whoever sweeps has its turn until it has read the schedules, too.
      const schedules = yield* turn.withPermit(
        Effect.sync(() => reads.filter((of) => of === names.subjects.schedulesOf(0)))
      )
      assert.lengthOf(schedules, 2)
    })
  )
})
