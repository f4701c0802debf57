import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"

/**
 * Recreates the consumers, so that the broker loses its delivery state as after a loss of memory.
 */
export const recreateConsumers = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  for (const index of [0, 1]) {
    const stream = names.deliveries(index)
    const { config } = yield* ask("look", () => jsm.consumers.info(stream, names.deliverConsumer))
    yield* ask("delete", () => jsm.consumers.delete(stream, names.deliverConsumer))
    yield* ask("add", () => jsm.consumers.add(stream, config))
  }
})

/** Returns the number of messages delivered by the consumers of all partitions. */
export const deliveryCount = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const infos = yield* ask("look", () =>
    Promise.all(
      [0, 1].map((index) => jsm.consumers.info(names.deliveries(index), names.deliverConsumer))
    )
  )
  return infos.reduce((sum, { delivered }) => sum + delivered.consumer_seq, 0)
})

/** Returns the number of messages ever stored in the queues. */
export const everQueued = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const infos = yield* ask("look", () =>
    Promise.all([0, 1].map((index) => jsm.streams.info(names.deliveries(index))))
  )
  return infos.reduce((sum, { state }) => sum + state.last_seq, 0)
})

/** Recreates the router's consumer, so that the broker redelivers all unacknowledged events. */
export const handOutEventsAgain = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { config } = yield* ask("look", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  yield* ask("delete", () => jsm.consumers.delete(names.events, names.routerConsumer))
  yield* ask("add", () => jsm.consumers.add(names.events, config))
})
