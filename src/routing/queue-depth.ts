import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"

/** Deliveries in all queues that their owners have not pulled, from which on they are deep. */
const deepFrom = 2_048
/** Pause between two looks at deep queues, ms. */
const pauseMs = 50
/** How long is waited for queues that stay deep, ms: who fills them must not stop others for good. */
const maxWaitMs = 2_000

/**
 * Follows how deep the queues are, all partitions together: what is stored in one now waits behind
 * what is in it.
 */
export const makeQueueDepth = Effect.fnUntraced(function* (partitions: number) {
  const { consumerInfo, names } = yield* Broker
  const queues = Array.from({ length: partitions }, (_, index) => names.deliveries(index))
  const depth = Effect.map(
    Effect.forEach(
      queues,
      (queue) => consumerInfo(`look at the consumer of ${queue}`, queue, names.deliverConsumer),
      { concurrency: 16 }
    ),
    (consumers) => consumers.reduce((sum, { num_pending }) => sum + num_pending, 0)
  )
  let left = 0
  // Where the broker does not answer, the stores that follow wait for it.
  const look = Effect.map(
    Effect.orElseSucceed(depth, () => 0),
    (depth) => {
      left = deepFrom - depth
      return left > 0
    }
  )
  const found: Effect.Effect<void> = Effect.flatMap(look, (isShallow) =>
    isShallow ? Effect.void : Effect.andThen(Effect.sleep(pauseMs), found)
  )
  const awaited = Effect.timeoutOrElse(found, {
    duration: maxWaitMs,
    orElse: () => Effect.void
  })
  return {
    /**
     * Waits until the queues are shallow, or 2 s. They are looked at once as many deliveries have
     * been routed as made them deep.
     */
    shallow: Effect.suspend(() => (left > 0 ? Effect.void : awaited)),
    /** Counts deliveries that may go to queues. */
    routed: (deliveries: number): void => {
      left -= deliveries
    }
  }
})

export type QueueDepth = Effect.Success<ReturnType<typeof makeQueueDepth>>
