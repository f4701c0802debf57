import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { EventCounts } from "../domain/installation.ts"
import { Broker } from "./broker.ts"
import { consumerNotFound } from "./broker-error.ts"
import { leaderAnswerMs } from "./survey-streams.ts"

/** The events, and how far routing is. */
export interface EventsSurvey {
  readonly counts: typeof EventCounts.Type
  /** When a router last finished an event, since the broker was started, ms since the epoch. */
  readonly lastRoutedAt: number | undefined
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
    counts: {
      stored: events?.state.messages ?? null,
      waitingForRouter: info?.num_pending ?? null,
      inRouter: info?.num_ack_pending ?? null,
      oldestUnroutedAt: oldest?.time.getTime() ?? null,
      lost: events === undefined || info === undefined ? 0 : lostIn(events, info)
    },
    lastRoutedAt: lastAck === undefined ? undefined : Date.parse(String(lastAck)),
    isRouterMissing: router.isMissing
  }
  return survey
})
