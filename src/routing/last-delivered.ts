import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { IsWantedEvent } from "../history/plans.ts"
import { newestPlanned } from "../history/plans.ts"

/**
 * Returns the sequences of the last event and of the last that the broker may have delivered to a
 * router, as far as the streams tell; later events are new. The consumer's own position may be too
 * low: the broker persists it with a delay, and after a crash or a change of leader the latest
 * position is lost. The plans in the history make up for it.
 *
 * @param consumer of the events.
 * @param isRouted whether it gives an event to be routed. (Default: all)
 */
export const readLastDelivered = Effect.fnUntraced(function* (
  consumer: string,
  isRouted?: IsWantedEvent
) {
  const { consumerInfo, names, readMessage, streamInfo } = yield* Broker
  const { config, delivered } = yield* consumerInfo("look at the router", names.events, consumer)
  const { state } = yield* streamInfo("look at the events", names.events)
  const last = state.last_seq
  const consumed = delivered.consumer_seq
  if (delivered.stream_seq >= last) return { consumed, last, lastDelivered: last }
  const query = { seq: delivered.stream_seq + 1, next_by_subj: ">" }
  const first = yield* readMessage("read the first undelivered event", names.events, query)
  if (first === null) return { consumed, last, lastDelivered: last }
  const prefetch = config.max_ack_pending ?? -1
  const planned = yield* newestPlanned(
    first.time.getTime(),
    prefetch > 0 ? prefetch : Number.POSITIVE_INFINITY,
    isRouted
  )
  return { consumed, last, lastDelivered: Math.max(delivered.stream_seq, planned) }
})
