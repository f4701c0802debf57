import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import type { BrokerError } from "./broker-error.ts"
import { streamNotFound } from "./broker-error.ts"

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
    readonly offline: boolean
    /** Operations that it has not applied yet. */
    readonly lag: number
  }>
}

/** Turns a failure or time-out into undefined. */
const ifAnswered = <A, R>(effect: Effect.Effect<A, BrokerError, R>) =>
  Effect.orElseSucceed(
    Effect.timeoutOrElse(effect, {
      duration: leaderAnswerMs,
      orElse: () => Effect.succeed(undefined)
    }),
    () => undefined
  )

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
  const { cluster } = info ?? {}
  const isLed = info !== undefined && (cluster === undefined || (cluster.leader ?? "") !== "")
  const survey: StreamSurvey = {
    name,
    state: missing ? "missing" : isLed ? "led" : "leaderless",
    info,
    behind: (cluster?.replicas ?? [])
      .filter(({ current, offline }) => offline || !current)
      .map(({ lag = 0, name, offline = false }) => ({ server: name, offline, lag }))
  }
  return survey
})

/** Reads the pending and unacknowledged messages of a consumer; undefined if there is no answer. */
export const lookAtConsumer = Effect.fnUntraced(function* (stream: string, consumer: string) {
  const { consumerInfo } = yield* Broker
  const info: ConsumerInfo | undefined = yield* ifAnswered(
    consumerInfo(`look at the consumer of ${stream}`, stream, consumer)
  )
  return info === undefined
    ? undefined
    : { pending: info.num_pending, ackPending: info.num_ack_pending }
})

/**
 * Counts the messages stored since a time (ms since the epoch); undefined if there is no answer.
 *
 * @param subject counts those of this subject. (Default: all)
 */
export const countSince = (stream: string, since: number, subject?: string) =>
  Effect.flatMap(Broker, (broker) => ifAnswered(broker.countSince(stream, since, subject)))
