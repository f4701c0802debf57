import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { consumerNotFound } from "./broker-error.ts"
import { leaderAnswerMs } from "./survey-streams.ts"

/** The events, and how far routing is. Undefined values are unknown. Times in ms since the epoch. */
export interface EventsSurvey {
  readonly stored: number | undefined
  /** Not yet delivered to the router. */
  readonly pending: number | undefined
  readonly inRouter: number | undefined
  /** When the oldest event was stored that is not routed; undefined also if all are. */
  readonly oldestUnroutedAt: number | undefined
  /** When a router last finished an event, since the broker was started. */
  readonly lastRoutedAt: number | undefined
  /** Events that left the stream before they were routed, as long as no later one is. */
  readonly lost: number
  /** Somebody has removed the consumer of the routers. */
  readonly isRouterMissing: boolean
}

/** Returns how many events are gone that the router has not acknowledged. */
const lostIn = (events: StreamInfo, router: ConsumerInfo): number =>
  Math.max(0, events.state.first_seq - 1 - router.ack_floor.stream_seq)

/** Surveys the events and their routing. */
export const surveyEvents = Effect.fnUntraced(function* (events: StreamInfo | undefined) {
  const { consumerInfo, names, readMessage } = yield* Broker
  const look = consumerInfo("look at the router", names.events, names.routerConsumer)
  const router = yield* look.pipe(
    Effect.map((info) => ({ info, isMissing: false })),
    Effect.catch((error) =>
      Effect.succeed({ info: undefined, isMissing: error.code === consumerNotFound })
    ),
    Effect.timeoutOrElse({
      duration: leaderAnswerMs,
      orElse: () => Effect.succeed({ info: undefined, isMissing: false })
    })
  )
  const { info } = router
  const isWaiting = info !== undefined && info.num_pending + info.num_ack_pending > 0
  const oldest = isWaiting
    ? yield* readMessage("look at the first event that is not routed", names.events, {
        seq: info.ack_floor.stream_seq + 1,
        next_by_subj: ">"
      }).pipe(Effect.orElseSucceed(() => null))
    : null
  // The client's type says a number; the server sends RFC 3339.
  const lastAck = info?.ack_floor.last_active
  const survey: EventsSurvey = {
    stored: events?.state.messages,
    pending: info?.num_pending,
    inRouter: info?.num_ack_pending,
    oldestUnroutedAt: oldest?.time.getTime(),
    lastRoutedAt: lastAck === undefined ? undefined : Date.parse(String(lastAck)),
    lost: events === undefined || info === undefined ? 0 : lostIn(events, info),
    isRouterMissing: router.isMissing
  }
  return survey
})
