import { Deferred, Effect, FiberSet, Schedule, Schema } from "effect"
import { Broker } from "../../broker/connection.ts"

/** The broker has lost what it had acknowledged last, and gives the same sequences to others. */
export class StreamTruncated extends Schema.TaggedError<StreamTruncated>()("TailLost", {
  message: Schema.String
}) {}

/** Pause before the stream is looked at again where that failed, ms. */
const pollMs = 500

/**
 * Looks after each interruption whether a stream still has what was known of it: a broker that died
 * may have lost what it had not written to its disk.
 *
 * @param highest sequence that this worker knows of.
 */
export const watchForTruncation = Effect.fnUntraced(function* (
  stream: string,
  highest: () => number
) {
  const { ask, jsm, onReconnect } = yield* Broker
  const lost = yield* Deferred.make<never, StreamTruncated>()
  const lose = Deferred.fail(
    lost,
    new StreamTruncated({
      message: `${stream} has lost what was stored in it last: what waits there is read anew`
    })
  )
  let doubts = 0
  const check = ask(`look at ${stream}`, () => jsm.streams.info(stream)).pipe(
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
    /** True from an interruption until it is known that nothing is lost, or that something is. */
    isDoubtful: () => doubts > 0 || Deferred.isDoneUnsafe(lost),
    /** It gave a sequence that it had given before. */
    lose,
    lost: Deferred.await(lost)
  }
})
