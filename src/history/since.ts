import { DeliverPolicy } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"

/**
 * The sequence at which reading a stream from a time (ms since the epoch) begins.
 *
 * A consumer that starts at a time is not made anew by the client after a gap: the broker refuses
 * the start time beside the sequence to go on from. One that starts at a sequence is.
 */
export const firstSince = Effect.fnUntraced(function* (stream: string, time: number) {
  if (time <= 0) return 1
  const { ask, js } = yield* Broker
  return yield* ask(`look for a time in ${stream}`, async () => {
    const consumer = await js.consumers.get(stream, {
      deliver_policy: DeliverPolicy.StartTime,
      opt_start_time: new Date(time).toISOString()
    })
    const { delivered } = await consumer.info(true)
    await consumer.delete()
    return delivered.stream_seq + 1
  })
})
