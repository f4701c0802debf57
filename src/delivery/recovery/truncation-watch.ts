import { Deferred, Effect, FiberSet, Schedule, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"

/** The stream was truncated: the broker lost acknowledged messages, and reuses their sequences. */
export class StreamTruncated extends Schema.TaggedError<StreamTruncated>()("TailLost", {
  message: Schema.String
}) {}

/** Pause before a failed check is repeated, ms. */
const pollMs = 500

/**
 * Checks after each reconnect whether the stream was truncated: a broker that died may have lost
 * what it had not synced to disk.
 *
 * @param highest returns the highest sequence that this worker knows.
 */
export const watchForTruncation = Effect.fnUntraced(function* (
  stream: string,
  highest: () => number
) {
  const { onReconnect, streamInfo } = yield* Broker
  const lost = yield* Deferred.make<never, StreamTruncated>()
  const lose = Deferred.fail(
    lost,
    new StreamTruncated({
      message: `${stream} has lost what was stored in it last: what waits there is read anew`
    })
  )
  let doubts = 0
  const check = streamInfo(`look at ${stream}`, stream).pipe(
    Effect.retry(Schedule.spaced(pollMs)),
    Effect.orDie,
    Effect.flatMap(({ state }) => (state.last_seq < highest() ? lose : Effect.void))
  )
  const run = yield* FiberSet.makeRuntime<never>()
  const forget = onReconnect(() => {
    doubts++
    run(check).addObserver(() => {
      doubts--
    })
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))
  return {
    /**
     * True from a reconnect until the check has passed, and for good if the stream was truncated.
     */
    isDoubtful: () => doubts > 0 || Deferred.isDoneUnsafe(lost),
    /** Reports that the stream reused a sequence. */
    lose,
    lost: Deferred.await(lost)
  }
})
