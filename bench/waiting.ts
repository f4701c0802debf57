/* What waits in the backlogs. */
import { Effect } from "effect"
import { Broker } from "../src/broker/connection.ts"
import { defaultTopology } from "../src/broker/topology.ts"
import type { Ground } from "./ground.ts"

/** Some wait elsewhere, for their retries: those that found the endpoint down. At most so many. */
export const elsewhere = 100

const waiting = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const partitions = Array.from({ length: defaultTopology.partitions }, (_, index) => index)
  const counts = yield* Effect.forEach(partitions, (partition) =>
    ask("look at what waits", () => jsm.streams.info(names.backlog(partition)))
  )
  return counts.reduce((sum, { state }) => sum + state.messages, 0)
})

/** Waits until so many, or almost, are in backlogs, and says how many there are. */
export const untilWaiting = ({ broker }: Pick<Ground, "broker">, atLeast: number) =>
  waiting.pipe(
    Effect.tap(Effect.sleep("100 millis")),
    Effect.repeat({ while: (count) => count < atLeast - elsewhere }),
    Effect.provide(Broker.layer(broker))
  )
