import { Effect } from "effect"
import { Broker } from "../src/broker/connection.ts"

/** Makes the broker forget what it has handed out, as after the loss of its memory. */
export const recreateConsumers = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  for (const index of [0, 1]) {
    const stream = names.deliveries(index)
    const { config } = yield* ask("look", () => jsm.consumers.info(stream, names.deliverConsumer))
    yield* ask("delete", () => jsm.consumers.delete(stream, names.deliverConsumer))
    yield* ask("add", () => jsm.consumers.add(stream, config))
  }
})

/** Messages that the consumers of all partitions have handed out. */
export const deliveryCount = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const infos = yield* ask("look", () =>
    Promise.all(
      [0, 1].map((index) => jsm.consumers.info(names.deliveries(index), names.deliverConsumer))
    )
  )
  return infos.reduce((sum, { delivered }) => sum + delivered.consumer_seq, 0)
})

/** How many messages ever came to the queues. */
export const everQueued = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const infos = yield* ask("look", () =>
    Promise.all([0, 1].map((index) => jsm.streams.info(names.deliveries(index))))
  )
  return infos.reduce((sum, { state }) => sum + state.last_seq, 0)
})

/** Makes the broker forget that it has handed out the events that are not finished. */
export const handOutEventsAgain = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const { config } = yield* ask("look", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  yield* ask("delete", () => jsm.consumers.delete(names.events, names.routerConsumer))
  yield* ask("add", () => jsm.consumers.add(names.events, config))
})
