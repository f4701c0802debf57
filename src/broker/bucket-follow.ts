import { Deferred, Effect, Stream } from "effect"
import { Broker } from "./broker.ts"
import { isUnanswered, keepGoing } from "./keep-going.ts"
import { type ReadMessage, readStream } from "./scan.ts"

/** Pause before a bucket is read again after a failure. */
const pause = "250 millis"
/**
 * After this time without a value a bucket whose leader answers is called refused, and read again, ms:
 * the broker drops requests for messages that it does not permit. Longer than a request waits for an
 * answer.
 */
const silentAfterMs = 10_000

/** What is made of the entries of a bucket, in their order. */
export interface FollowedEntries {
  /** @param text undefined for a key that was removed; empty if only keys are followed. */
  hear(key: string, text: string | undefined): void
  /** Called once, when all entries that were there have been heard. */
  complete?(): void
}

interface FollowOptions {
  readonly bucket: string
  /** Follows keys without their values. (Default: false) */
  readonly keysOnly?: boolean
  /**
   * Pause between questions to the bucket's leader how far it is, ms. A watch that lacks something
   * for so long is started again.
   */
  readonly lagMs: number
  /**
   * Called with false whenever the broker refuses to show the bucket, which is not the same as a broker
   * that is away or has no leader for it, and with true whenever all that the leader has was heard.
   */
  readonly shown?: (isShown: boolean) => void
}

/** Headers that only delete markers have. */
const marks = ["KV-Operation", "Nats-Marker-Reason"]

/** Ends once a count has not changed for a while. */
const untilSilent = Effect.fnUntraced(function* (count: () => number) {
  let before = -1
  while (before !== count()) {
    before = count()
    yield* Effect.sleep(silentAfterMs)
  }
  return "silent" as const
})

/**
 * Follows a bucket until the scope closes. Whenever it is read anew, after a reconnect or when the
 * watch is behind the leader, a new table takes the place of the former one once it is complete.
 * Returns when the first one is.
 */
export const followBucket = Effect.fnUntraced(function* <T extends FollowedEntries>(
  { bucket, keysOnly = false, lagMs, shown }: FollowOptions,
  make: () => T
) {
  const { onReconnect, streamInfo } = yield* Broker
  const stream = `KV_${bucket}`
  const prefix = `$KV.${bucket}.`
  const range = { stream, subjects: [`${prefix}>`], headersOnly: keysOnly }
  const first = yield* Deferred.make<void>()
  let current = make()

  const lastSeq = Effect.map(streamInfo(`look at ${bucket}`, stream), ({ state }) => state.last_seq)

  const followOnce = Effect.scoped(
    Effect.gen(function* () {
      const again = yield* Deferred.make<void>()
      // A watch may miss what is changed while the connection is gone.
      const forget = onReconnect(() => Deferred.doneUnsafe(again, Effect.void))
      yield* Effect.addFinalizer(() => Effect.sync(forget))
      const table = make()
      let reached = yield* lastSeq
      const from = reached + 1
      let heard = 0
      const hear = (message: ReadMessage) => {
        heard++
        const text = isGone(message) ? undefined : message.string()
        table.hear(message.subject.slice(prefix.length), text)
        reached = Math.max(reached, message.seq)
      }
      const read = Stream.runForEach(readStream(range), (message) =>
        Effect.sync(() => hear(message))
      )
      const ended = yield* Effect.raceFirst(
        Effect.as(read, "read" as const),
        untilSilent(() => heard)
      )
      if (ended === "silent") return shown?.(false)
      table.complete?.()
      current = table
      shown?.(true)
      yield* Deferred.succeed(first, undefined)
      const changes = Stream.runForEach(
        readStream({ ...range, fromSeq: from, follow: true }),
        (message) => Effect.sync(() => hear(message))
      )
      /** Ends when the leader has had something for a while that the watch has not shown. */
      const untilBehind = Effect.gen(function* () {
        while (true) {
          const goal = yield* lastSeq
          yield* Effect.sleep(lagMs)
          if (reached < goal) return
          shown?.(true)
        }
      })
      yield* changes.pipe(Effect.raceFirst(Deferred.await(again)), Effect.raceFirst(untilBehind))
    })
  )

  const following = Effect.tapError(followOnce, (error) =>
    Effect.sync(() => {
      if (!isUnanswered(error)) shown?.(false)
    })
  )
  yield* Effect.forkScoped(keepGoing(`follow ${bucket}`, following, pause))
  yield* Deferred.await(first)
  return () => current
})

const isGone = ({ headers }: ReadMessage): boolean =>
  marks.some((name) => headers?.has(name) === true)
