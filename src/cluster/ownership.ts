import { Deferred, Effect, Option, Semaphore } from "effect"
import { Broker } from "../broker/connection.ts"
import type { Life } from "../broker/outbound.ts"
import { eraseValue, isConflict, writeValue } from "../broker/values.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { readEntry } from "./kv-entry.ts"
import { decodeLease, leaseKey } from "./roster.ts"

/** The owner of partitions, and the TTL of its leases, ms. */
export interface Owner {
  readonly worker: string
  /** Random: two processes may have been given the same id. */
  readonly instance: string
  /** The broker counts TTLs in whole seconds. */
  readonly ttl: number
}

/** Default TTL, ms: for this long nobody delivers in the partitions of a worker that has died. */
export const defaultTtl = 10_000

/** The right to deliver in a partition, as long as its lease is renewed. */
export interface Ownership {
  readonly partition: number
  /** True while nobody else can be owner: the lease was renewed within half its TTL. */
  readonly holds: () => boolean
  /** Waits until another worker has taken the partition. */
  readonly lost: Effect.Effect<void>
  readonly isLost: () => boolean
  /** Renews the lease. Called several times per TTL. */
  readonly renew: Effect.Effect<void, never, Broker>
  /** Releases the lease, so that another worker can take it at once. */
  readonly giveBack: Effect.Effect<void, never, Broker>
}

/**
 * Key of a partition's last owner, which does not expire. An owner whose lease has expired during
 * an outage of the broker may continue only if nobody has delivered in between: otherwise its state
 * in memory is out of date.
 */
export const lastKey = (partition: number) => `last-owner.${partition}`

/**
 * Takes the lease of a partition; returns undefined if it is not free. Fails if the broker does not
 * answer.
 */
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
  /** When the last successful write began: the lease lasts at least a TTL from then. */
  let renewedAt = Number.NEGATIVE_INFINITY
  /** The connection of that write. */
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
    // If the broker is gone, the lease expires.
    Effect.ignore(Effect.timeoutOption(eraseValue(bucket, key, revision), "1 second"))
  )

  const found = yield* look
  // A lease of this instance remains from a write whose answer was lost.
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
  /**
   * Finds out whether an own write lost its answer, the lease expired, or another worker took it.
   */
  const reconsider = Effect.gen(function* () {
    const now = yield* look
    if (now.holder !== undefined && now.holder.instance !== instance)
      return yield* lose(now.holder.worker)
    const last = yield* readEntry(bucket, lastKey(partition))
    if (last.text !== instance) return yield* lose(undefined)
    yield* write(now.revision)
  })
  // A truncated bucket reuses revisions: after a reconnect, another worker's lease may have this
  // revision.
  const renewOrLook = Effect.suspend(() =>
    outbound.life === renewedIn
      ? Effect.catchIf(write(revision), isConflict, () => reconsider)
      : reconsider
  )
  // Writes are serialized: a renewal after the release would leave a lease without owner.
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
