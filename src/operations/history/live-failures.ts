import type { Msg } from "@nats-io/transport-node"
import { Deferred, Effect, Option, Queue, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readStream } from "../../broker/scan.ts"
import type { Life } from "../../broker/wire.ts"
import { answeredFact } from "../../history/fact-record.ts"
import { parseFact } from "../../history/read.ts"
import { timers } from "../../time/timers.ts"
import type { LiveMessage } from "../operation.ts"
import { readingHistory } from "./history-readings.ts"

/** Failures that wait to be taken. Beyond, the newest are dropped. */
const maxWaiting = 1_000
/** Failures of before that a follower gets that was away: the oldest ones. */
export const maxMissed = 1_000

/**
 * How long the broker may be away until a stream ends, ms. It has usually restarted by then, and not
 * every client comes back while this console can only refuse it.
 */
const awayMs = 10_000
/** Pause between looks at the connection, ms. */
const lookEveryMs = 500

/**
 * Waits until what is heard has a gap: there is another connection to the broker, or none for a while.
 *
 * @param began the connection that was listened on first.
 */
const connectionLost = (life: () => Life | undefined, began: Life | undefined) =>
  Effect.suspend(() => {
    let heardAt = timers.monotonicMs()
    return Effect.repeat(Effect.sleep(lookEveryMs), {
      until: () => {
        const now = timers.monotonicMs()
        if (life() === began) heardAt = now
        return life() !== began && (life() !== undefined || now - heardAt >= awayMs)
      }
    })
  })

/** Which failures: of one tenant, or of one of its endpoints. (Default: all) */
interface Followed {
  readonly tenant: string | undefined
  readonly endpoint: string | undefined
}

const messagesOf = (text: string, seq: number): ReadonlyArray<LiveMessage> =>
  Option.match(parseFact(text, seq), {
    onNone: () => [],
    onSome: ({ record, seq }) => [{ tells: "failure", seq, record: answeredFact(record) }]
  })

/** Returns what a follower missed since a fact, up to the last one there is now. */
const missedSince = Effect.fnUntraced(function* (
  { endpoint = "*", tenant = "*" }: Followed,
  after: number
) {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look where the history ends", names.history)
  const { first_seq: first, last_seq: until } = state
  const gap = (dropped: number | null, why: string, from = after): LiveMessage => ({
    ...{ tells: "dropped", dropped, why, until },
    after: from
  })
  const position: LiveMessage = { tells: "position", seq: until }
  if (after > until)
    return [gap(null, "the history has no such fact (yet): it may be another one"), position]
  if (after === until) return [position]
  const range = {
    stream: names.history,
    subjects: [names.subjects.fact(tenant, endpoint, "failure", "*")],
    fromSeq: Math.max(first, after + 1)
  }
  const reading = Stream.runCollect(Stream.take(readStream(range), maxMissed + 1))
  return yield* Effect.map(readingHistory(reading), (found): ReadonlyArray<LiveMessage> => {
    const upToNow = found.filter(({ seq }) => seq <= until)
    const sent = upToNow.slice(0, maxMissed)
    const [more] = upToNow.slice(maxMissed)
    return [
      ...(after + 1 < first ? [gap(null, "the history does not reach back so far")] : []),
      ...sent.flatMap((message) => messagesOf(message.string(), message.seq)),
      ...(more === undefined
        ? []
        : [
            gap(
              more.info.pending + 1,
              `no more than ${maxMissed} are sent: the log of deliveries has them`,
              sent.at(-1)?.seq
            )
          ]),
      position
    ]
  }).pipe(
    // What happens from now on is told all the same.
    Effect.catchTag("Busy", ({ message }) => Effect.succeed([gap(null, message), position]))
  )
})

/** What is told of failures that the broker does not let this user receive. */
const refused: LiveMessage = {
  ...{ tells: "dropped", dropped: null },
  why: "the broker lets this console receive none now: what is missed is sent once it does"
}

/** Returns where a follower begins that has missed nothing. */
const positionNow = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look where the history ends", names.history)
  return [{ tells: "position", seq: state.last_seq }] satisfies ReadonlyArray<LiveMessage>
})

/**
 * Failures as the broker republishes them. Those that come while nobody listens are only in the
 * history; whoever takes them too slowly is told how many were dropped, and whoever hears of none, as
 * the broker lets this user receive none, is told that. Ends where some may have been missed, as the
 * connection to the broker was lost or the broker refused them: whoever comes back is sent those.
 *
 * @param after the last fact that the follower knows: what it has missed since comes first, as far as
 *   the history has it, `maxMissed` at most. (Default: it has missed nothing)
 */
export const liveFailures = (followed: Followed, after: number | undefined) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { flush, life, listen, names } = yield* Broker
      const began = life()
      const { endpoint = "*", tenant = "*" } = followed
      const heard = yield* Queue.dropping<Msg | LiveMessage>(maxWaiting)
      const permittedAgain = yield* Deferred.make<void>()
      let dropped = 0
      const onPermission = (isPermitted: boolean) => {
        if (isPermitted) Deferred.doneUnsafe(permittedAgain, Effect.void)
        // Where there is no place for it, what is left out is told with the next one.
        else if (!Queue.offerUnsafe(heard, refused)) dropped++
      }
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          listen(
            names.subjects.failures(tenant, endpoint, "*"),
            (message) => {
              if (!Queue.offerUnsafe(heard, message)) dropped++
            },
            onPermission
          )
        ),
        (unlisten) => Effect.sync(unlisten)
      )
      yield* flush
      const before = yield* after === undefined ? positionNow : missedSince(followed, after)
      const known = before.at(-1)
      const from = known?.tells === "position" ? known.seq : 0
      const later = Stream.fromQueue(heard).pipe(
        Stream.map((message): ReadonlyArray<LiveMessage> => {
          if ("tells" in message) return [message]
          const seq = Number(message.headers?.get("Nats-Sequence"))
          // It came while what was missed was read.
          if (seq <= from) return []
          const left = dropped
          dropped = 0
          const gap: ReadonlyArray<LiveMessage> =
            left === 0
              ? []
              : [{ tells: "dropped", dropped: left, why: "they were read too slowly" }]
          return [...gap, ...messagesOf(message.string(), seq)]
        }),
        Stream.flatMap(Stream.fromIterable)
      )
      return Stream.concat(Stream.fromIterable(before), later).pipe(
        Stream.interruptWhen(
          Effect.raceFirst(connectionLost(life, began), Deferred.await(permittedAgain))
        )
      )
    })
  )
