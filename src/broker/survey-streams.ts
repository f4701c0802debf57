import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream"
import { type Duration, Effect } from "effect"
import type { EventCounts } from "../domain/installation.ts"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { consumerNotFound, streamNotFound } from "./broker-error.ts"
import type { WantedConsumer } from "./consumers.ts"
import { routerConsumer } from "./consumers.ts"
import { restrictionsOfConsumer } from "./restrictions.ts"

/** How long a stream's leader may take to report its state. */
export const leaderAnswerMs = "2 seconds"

/** State of a stream. */
export interface StreamSurvey {
  readonly name: string
  /**
   * `led`: the stream works. `leaderless`: it accepts no writes, and recent messages cannot be
   * read.
   */
  readonly state: "led" | "leaderless" | "missing"
  /** Undefined if there was no answer. */
  readonly info: StreamInfo | undefined
  /** Replicas that are offline or not current. */
  readonly behind: ReadonlyArray<{
    readonly server: string
    /** The broker says so, or the leader has not heard of it for {@link offlineAfterMs}. */
    readonly offline: boolean
    /** Operations that it has not applied yet. */
    readonly lag: number
  }>
}

/** A leader hears of each copy every second. A server of which it does not for longer is offline, ms. */
const offlineAfterMs = 10_000

/** Returns for how long a stream has been led by the present leader, ms; undefined without a cluster. */
const ledForMs = ({ cluster, ts = "" }: StreamInfo): number | undefined =>
  cluster?.leader_since === undefined
    ? undefined
    : Date.parse(ts) - Date.parse(cluster.leader_since)

/** The same for all streams together: a cluster waits 4 s for the leaders that there are not. */
const listAnswerMs = "1 second"

/** Turns a failure or time-out into undefined. */
const ifAnswered = <A, R>(
  effect: Effect.Effect<A, BrokerError, R>,
  duration: Duration.Input = leaderAnswerMs
) =>
  Effect.orElseSucceed(
    Effect.timeoutOrElse(effect, {
      duration,
      orElse: () => Effect.succeed(undefined)
    }),
    () => undefined
  )

/** @param info what its leader has said of it. */
export const surveyOf = (
  name: string,
  info: StreamInfo | undefined,
  missing: boolean
): StreamSurvey => {
  const { cluster } = info ?? {}
  const ledMs = (info === undefined ? undefined : ledForMs(info)) ?? 0
  const isLed = info !== undefined && (cluster === undefined || (cluster.leader ?? "") !== "")
  return {
    name,
    state: missing ? "missing" : isLed ? "led" : "leaderless",
    info,
    behind: (cluster?.replicas ?? [])
      .filter(({ current, offline }) => offline || !current)
      .map(({ active, lag = 0, name, offline = false }) => ({
        server: name,
        // A leader that has not heard of it at all says 0.
        offline: offline || (active > 0 ? active / 1e6 : ledMs) > offlineAfterMs,
        lag
      }))
  }
}

/** Reads the state of a stream. */
export const lookAtStream = Effect.fnUntraced(function* (name: string) {
  const { streamInfo } = yield* Broker
  let missing = false
  const info = yield* ifAnswered(
    streamInfo(`look at stream ${name}`, name).pipe(
      Effect.tapError(({ code }) =>
        Effect.sync(() => {
          missing = code === streamNotFound
        })
      )
    )
  )
  return surveyOf(name, info, missing)
})

/** Maximum concurrent requests about single streams. */
const maxConcurrentLooks = 64

/**
 * Reads the states of some streams: as many as it can by one request, the others one by one. Those of
 * that request were not read at the same moment.
 */
export const lookAtStreams = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const { listStreams } = yield* Broker
  const listed = (yield* ifAnswered(listStreams("list the streams"), listAnswerMs)) ?? []
  const infos = new Map(listed.map((info) => [info.config.name, info]))
  return yield* Effect.forEach(
    names,
    (name) => {
      const info = infos.get(name)
      return info === undefined ? lookAtStream(name) : Effect.succeed(surveyOf(name, info, false))
    },
    { concurrency: maxConcurrentLooks }
  )
})

/** Sources are heard of each second, also where nothing is published. After more, one is silent, ms. */
const silentAfterMs = 5_000

/**
 * Returns the sources of which a stream hears nothing, and for how long, ms. The broker begins again by
 * itself, some 10 to 40 s after a server was lost. Their lag is no longer true: it may say 0.
 *
 * The time is undefined for a source that a server which is alone has not heard of since it started.
 */
export const silentSources = (info: StreamInfo) => {
  const { sources = [] } = info
  return sources
    .map(({ active, name }) => ({
      name,
      // A leader that has not heard of a source at all says -1.
      silentMs: active < 0 ? ledForMs(info) : active / 1e6
    }))
    .filter(({ silentMs }) => silentMs === undefined || silentMs > silentAfterMs)
}

/** Returns true for a stream that was made so lately that none of its sources can be called silent. */
export const isNew = ({ created, ts = created }: StreamInfo): boolean =>
  Date.parse(ts) - Date.parse(created) <= silentAfterMs

/** Reads the pending and unacknowledged messages of a consumer; undefined if there is no answer. */
export const lookAtConsumer = Effect.fnUntraced(function* (
  stream: string,
  consumer: WantedConsumer
) {
  const { consumerInfo } = yield* Broker
  const info: ConsumerInfo | undefined = yield* ifAnswered(
    consumerInfo(`look at the consumer of ${stream}`, stream, consumer.durable_name)
  )
  return info === undefined
    ? undefined
    : {
        pending: info.num_pending,
        ackPending: info.num_ack_pending,
        restrictions: restrictionsOfConsumer(info, consumer)
      }
})

/**
 * Counts the messages stored since a time (ms since the epoch); undefined if there is no answer.
 *
 * @param subject counts those of this subject. (Default: all)
 */
export const countSince = (stream: string, since: number, subject?: string) =>
  Effect.flatMap(Broker, (broker) => ifAnswered(broker.countSince(stream, since, subject)))

/** The events, and how far routing is. */
export interface EventsSurvey {
  readonly counts: typeof EventCounts.Type
  /** When a router last finished an event, since the broker was started, ms since the epoch. */
  readonly lastRoutedAt: number | undefined
  /** Somebody has removed the consumer of the routers. */
  readonly isRouterMissing: boolean
  /** Fields by which that consumer hands out too little, as somebody has changed them. */
  readonly restrictions: ReadonlyArray<string>
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
    isRouterMissing: router.isMissing,
    restrictions:
      info === undefined
        ? []
        : restrictionsOfConsumer(info, routerConsumer(names, 0), events?.config.num_replicas)
  }
  return survey
})
