import { Deferred, Effect, Option, Semaphore } from "effect"
import { Broker } from "../broker/connection.ts"
import { elapsedMs } from "../broker/elapsed.ts"
import type { Life } from "../broker/outbound.ts"
import { eraseValue, isConflict, writeValue } from "../broker/values.ts"
import { readEntry } from "./kv-entry.ts"
import { decodeLease, leaseKey } from "./roster.ts"

/** Who owns a partition, and for how long without a sign of life, ms. */
export interface Owner {
  readonly worker: string
  /** Random: two processes may have been given the same id. */
  readonly instance: string
  /** The broker counts in whole seconds. */
  readonly ttl: number
}

/** How long nobody delivers what a worker had that has died, where nothing else was asked for, ms. */
export const defaultTtl = 10_000

/** The right to deliver what lies in a partition, for as long as it is renewed. */
export interface Ownership {
  readonly partition: number
  /** True while nobody else can be owner: it was renewed within half its life. */
  readonly holds: () => boolean
  /** Waits until it has passed to somebody else. */
  readonly lost: Effect.Effect<void>
  readonly isLost: () => boolean
  /** To be called several times in each of its lives. */
  readonly renew: Effect.Effect<void, never, Broker>
  /** Gives it back, so that another may have it at once. */
  readonly giveBack: Effect.Effect<void, never, Broker>
}

/**
 * Key of the last owner of a partition, which does not end. An owner whose lease has ended while
 * the broker was away may go on only if nobody has delivered in between: what it remembers would
 * be out of date.
 */
export const lastKey = (partition: number) => `last-owner.${partition}`

/** Takes the lease of a partition, if it is free. Fails where the broker does not answer. */
export const takeOwnership = Effect.fnUntraced(function* (partition: number, owner: Owner) {
  const { names, publisher } = yield* Broker
  const { outbound } = publisher
  const bucket = names.buckets.workers
  const { instance, ttl, worker } = owner
  const key = leaseKey(partition)
  const value = JSON.stringify({ worker, instance })

  const look = Effect.map(readEntry(bucket, key), ({ revision, text }) => ({
    revision,
    holder: Option.getOrUndefined(decodeLease(text ?? ""))
  }))
  let revision = 0
  /** When the last write that succeeded began: the broker counts from no earlier. */
  let renewedAt = Number.NEGATIVE_INFINITY
  /** Through which connection. */
  let renewedIn: Life | undefined
  const write = (expected: number) =>
    Effect.suspend(() => {
      const begun = elapsedMs()
      const { life } = outbound
      return Effect.map(writeValue(bucket, key, value, { ttl, expected }), ({ seq }) => {
        revision = seq
        renewedIn = life
        renewedAt = begun
      })
    })
  const erase = Effect.suspend(() =>
    // A broker that is gone ends it by time.
    Effect.ignore(Effect.timeoutOption(eraseValue(bucket, key, revision), "1 second"))
  )

  const found = yield* look
  // An own one is left of a write whose answer was lost.
  if (found.holder !== undefined && found.holder.instance !== instance) return undefined
  const taken = yield* write(found.revision).pipe(
    Effect.as(true),
    Effect.catchIf(isConflict, () => Effect.succeed(false))
  )
  if (!taken) return undefined
  yield* Effect.tapError(writeValue(bucket, lastKey(partition), instance), () => erase)

  const lost = yield* Deferred.make<void>()
  const isLost = () => Deferred.isDoneUnsafe(lost)
  const lose = Effect.fnUntraced(function* (to: string | undefined) {
    renewedAt = Number.NEGATIVE_INFINITY
    yield* Effect.logWarning("another worker has taken a partition over", { partition, owner: to })
    yield* Deferred.succeed(lost, undefined)
  })
  /** An own write whose answer was lost, an end by time, or another owner: looks which. */
  const reconsider = Effect.gen(function* () {
    const now = yield* look
    if (now.holder !== undefined && now.holder.instance !== instance)
      return yield* lose(now.holder.worker)
    const last = yield* readEntry(bucket, lastKey(partition))
    if (last.text !== instance) return yield* lose(undefined)
    yield* write(now.revision)
  })
  // A bucket that has lost its end gives revisions again: after an interruption another's lease may
  // have the one of this.
  const renewOrLook = Effect.suspend(() =>
    outbound.life === renewedIn
      ? Effect.catchIf(write(revision), isConflict, () => reconsider)
      : reconsider
  )
  // One at a time: a renewal that comes after the end would be a lease without an owner.
  const one = yield* Semaphore.make(1)
  let given = false
  const renew = one.withPermit(
    Effect.suspend(() => (given || isLost() ? Effect.void : Effect.ignore(renewOrLook)))
  )
  const giveBack = one
    .withPermit(
      Effect.suspend(() => {
        if (given || isLost()) return Effect.void
        given = true
        renewedAt = Number.NEGATIVE_INFINITY
        return erase
      })
    )
    .pipe(Effect.timeoutOption("1 second"), Effect.ignore)
  const ownership: Ownership = {
    partition,
    holds: () => elapsedMs() - renewedAt < ttl / 2,
    lost: Deferred.await(lost),
    isLost,
    renew,
    giveBack
  }
  return ownership
})
