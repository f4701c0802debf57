import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, isConflict, readEntry, writeValue } from "../broker/values.ts"
import { timers } from "../time/timers.ts"

/** How long work remains with a console that does not renew its lease, ms. */
export const leaseMs = 10_000
/** Pause between renewals of a lease. */
const renewEvery = "1 second"

/** The right of one console to do a piece of work. */
export interface WorkLease {
  /** Returns false if another console has taken the work. */
  readonly renew: Effect.Effect<boolean, Effect.Error<ReturnType<typeof writeValue>>, Broker>
  readonly giveBack: Effect.Effect<void, never, Broker>
}

/**
 * Takes the lease under a key of the bucket of jobs; returns undefined if another console has it.
 *
 * @param owner the console, and what tells it from others.
 */
export const takeLease = Effect.fnUntraced(function* (key: string, owner: string) {
  const { names } = yield* Broker
  const bucket = names.buckets.jobs
  const entry = yield* readEntry(bucket, key)
  if (entry.text !== undefined) return undefined
  let revision = entry.revision
  const put = Effect.suspend(() =>
    writeValue(bucket, key, owner, { expected: revision, ttl: leaseMs })
  ).pipe(
    Effect.map(({ seq }) => {
      revision = seq
      return true
    }),
    Effect.catchIf(isConflict, () => Effect.succeed(false))
  )
  if (!(yield* put)) return undefined
  return {
    // One that is broken off may be stored nonetheless, and then could not be given back.
    renew: Effect.uninterruptible(put),
    giveBack: Effect.suspend(() => eraseValue(bucket, key, revision)).pipe(Effect.ignore)
  } satisfies WorkLease
})

/**
 * Renews a lease until it is lost. Without an answer it counts as lost before it expires, because
 * another console then takes it.
 *
 * @param beat done after each renewal; what it returns ends the renewals.
 */
export const keepLease = <A extends string, E, R>(
  lease: WorkLease,
  beat: Effect.Effect<A | undefined, E, R>
): Effect.Effect<A | "lost", never, R | Broker> =>
  Effect.gen(function* () {
    let renewedAt = timers.monotonicMs()
    while (true) {
      yield* Effect.sleep(renewEvery)
      const held: Effect.Effect<A | "lost" | undefined, E, R> = beat
      const end = yield* lease.renew.pipe(
        Effect.flatMap((isHeld) => (isHeld ? held : Effect.succeed("lost" as const))),
        Effect.tap(() =>
          Effect.sync(() => {
            renewedAt = timers.monotonicMs()
          })
        ),
        Effect.catch(() =>
          Effect.succeed(
            timers.monotonicMs() - renewedAt > leaseMs / 2 ? ("lost" as const) : undefined
          )
        )
      )
      if (end !== undefined) return end
    }
  })
