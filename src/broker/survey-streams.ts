import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream"
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import type { BrokerError } from "./connection.ts"
import { Broker } from "./connection.ts"
import { streamNotFound } from "./installed.ts"

/** How long a stream's leader may take to say how it is. */
export const leaderPatience = "2 seconds"

/** How a stream is. */
export interface StreamSurvey {
  readonly name: string
  /** Led: it works. Leaderless: nobody can write to it, nor read what is new. */
  readonly state: "led" | "leaderless" | "missing"
  /** Undefined where nobody says. */
  readonly info: StreamInfo | undefined
  /** Copies that are not as they should be. */
  readonly behind: ReadonlyArray<{
    readonly server: string
    readonly offline: boolean
    /** Operations that it has not got yet. */
    readonly lag: number
  }>
}

/** Undefined where the leader says nothing. */
const ifAnswered = <A, R>(effect: Effect.Effect<A, BrokerError, R>) =>
  Effect.orElseSucceed(
    Effect.timeoutOrElse(effect, {
      duration: leaderPatience,
      orElse: () => Effect.succeed(undefined)
    }),
    () => undefined
  )

/** Looks how a stream is. */
export const lookAtStream = Effect.fnUntraced(function* (name: string) {
  const { ask, jsm } = yield* Broker
  let missing = false
  const info = yield* ifAnswered(
    ask(`look at stream ${name}`, () => jsm.streams.info(name)).pipe(
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

/** What a consumer has before it, and handed out; undefined where nobody says. */
export const lookAtConsumer = Effect.fnUntraced(function* (stream: string, consumer: string) {
  const { ask, jsm } = yield* Broker
  const info: ConsumerInfo | undefined = yield* ifAnswered(
    ask(`look at the consumer of ${stream}`, () => jsm.consumers.info(stream, consumer))
  )
  return info === undefined
    ? undefined
    : { pending: info.num_pending, ackPending: info.num_ack_pending }
})

/** How many messages were stored since a time (ms since the epoch); undefined where nobody says. */
export const countSince = Effect.fnUntraced(function* (stream: string, since: number) {
  const { ask, jsm } = yield* Broker
  return yield* ifAnswered(
    ask(`count what is new in ${stream}`, async () => {
      const consumer = await jsm.consumers.add(stream, {
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.StartTime,
        opt_start_time: new Date(since).toISOString(),
        inactive_threshold: nanos(5_000),
        mem_storage: true,
        num_replicas: 1
      })
      await jsm.consumers.delete(stream, consumer.name)
      return consumer.num_pending
    })
  )
})
