import { Deferred, Effect, Queue, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { readStream } from "../broker/scan.ts"
import { timers } from "../time/timers.ts"
import { beatsPerTtl } from "./ownership.ts"
import { Roster, rosterSubjects } from "./roster.ts"

/** Pause before the roster is read again after a failure, ms. */
const pollMs = 1_000

/**
 * Keeps the roster of workers and leases current until the scope closes.
 *
 * @param isSound true while this worker's own heartbeats are stored.
 */
export const watchRoster = Effect.fnUntraced(function* (
  bucket: string,
  ttl: number,
  isSound: () => boolean
) {
  const { onReconnect } = yield* Broker
  const changes = yield* Queue.sliding<void>(1)
  const tell = () => Queue.offerUnsafe(changes, undefined)
  let roster = new Roster()
  let complete = false
  /** When the last message arrived, ms of the monotonic clock. */
  let heardAt = timers.monotonicMs()

  const readOnce = Effect.scoped(
    Effect.gen(function* () {
      const again = yield* Deferred.make<void>()
      const forget = onReconnect(() => Deferred.doneUnsafe(again, Effect.void))
      yield* Effect.addFinalizer(() => Effect.sync(forget))
      roster = new Roster()
      complete = false
      heardAt = timers.monotonicMs()
      const follow = Stream.runForEach(
        readStream({ stream: `KV_${bucket}`, subjects: rosterSubjects(bucket), follow: true }),
        (message) =>
          Effect.sync(() => {
            heardAt = timers.monotonicMs()
            const changed = roster.hear(message.subject, message.string(), heardAt)
            const wasComplete = complete
            complete ||= message.info.pending === 0
            if (complete && (changed || !wasComplete)) tell()
          })
      )
      // The worker's own heartbeats pass by several times per TTL, so silence means that the watch
      // is broken. Silence does not count while there is no broker: a watch that begins then
      // survives the outage.
      const silence = Effect.repeat(Effect.sleep(ttl / beatsPerTtl), {
        until: () => isSound() && timers.monotonicMs() - heardAt > ttl
      })
      yield* Effect.raceFirst(follow, Effect.raceFirst(Deferred.await(again), silence))
    })
  )
  yield* Effect.forkScoped(keepGoing("listen to the other workers", readOnce, pollMs))
  return { changes, roster: () => roster, isComplete: () => complete }
})
