import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { ageLimitMs } from "../../broker/kept-since.ts"

/** Interval at which it is read how long events are kept, ms: `petrel init` may change it. */
const lookEveryMs = 10_000

/**
 * Reads how long events are kept, again and again until the scope closes.
 *
 * @returns what returns it, ms: infinite for ever, undefined until it is known.
 */
export const watchEventAge = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  let keptMs: number | undefined
  const look = Effect.map(streamInfo("look how long events are kept", names.events), (info) => {
    keptMs = ageLimitMs(info.config) || Number.POSITIVE_INFINITY
  })
  yield* Effect.ignore(look)
  yield* Effect.forkScoped(
    keepGoing("look how long events are kept", Effect.delay(look, lookEveryMs), lookEveryMs)
  )
  return () => keptMs
})
