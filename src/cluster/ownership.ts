import { Deferred, Effect, Option, Semaphore } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, isConflict, readEntry, writeValue } from "../broker/values.ts"
import type { Life } from "../broker/wire.ts"
import { elapsedMs } from "../time/elapsed.ts"
import type { HandedOver } from "./hand-over.ts"
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
  /** Why the last renewal failed; undefined if it did not, or was not answered. */
  readonly failure: () => string | undefined
  /** Revision of the lease's key that it was taken at, where the taker named it. */
  readonly follows: number | undefined
  /**
   * Releases the lease, so that another worker can take it at once. Returns the revision that the
   * release left; undefined where the lease was lost or the broker did not answer.
   */
  readonly giveBack: Effect.Effect<number | undefined, never, Broker>
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
 *
 * @param released the revision that its former owner left. The lease is taken only if nobody has
 *   written it since.
 */
export const takeOwnership = Effect.fnUntraced(function* (
  partition: number,
  owner: Owner,
  released?: number
) {
  const { life, names } = yield* Broker
  const lease = new PartitionLease(partition, owner, names.buckets.workers, life, released)
  return (yield* lease.take) ? (lease satisfies Ownership) : undefined
})

class PartitionLease implements Ownership {
  readonly partition: number
  readonly follows: number | undefined
  readonly #owner: Owner
  readonly #bucket: string
  readonly #life: () => Life | undefined
  readonly #lost = Deferred.makeUnsafe<void>()
  #failure: string | undefined
  /** Writes are serialized: a renewal after the release would leave a lease without owner. */
  readonly #writing = Semaphore.makeUnsafe(1)
  #isReleased = false
  /** Revision of the last successful write. */
  #revision = 0
  /** When that write began, ms of the monotonic clock: the lease lasts at least a TTL from then. */
  #renewedAt = Number.NEGATIVE_INFINITY
  /** The connection of that write. */
  #renewedIn: Life | undefined

  constructor(
    partition: number,
    owner: Owner,
    bucket: string,
    life: () => Life | undefined,
    follows: number | undefined
  ) {
    this.partition = partition
    this.follows = follows
    this.#owner = owner
    this.#bucket = bucket
    this.#life = life
  }

  readonly holds = (): boolean => elapsedMs() - this.#renewedAt < this.#owner.ttl / 2

  readonly lost = Deferred.await(this.#lost)

  readonly isLost = (): boolean => Deferred.isDoneUnsafe(this.#lost)

  /** Succeeds with false if another process has the lease. */
  readonly take = Effect.gen({ self: this }, function* () {
    const { instance } = this.#owner
    const found =
      this.follows === undefined
        ? yield* this.#read()
        : { revision: this.follows, holder: undefined }
    // A lease of this instance remains from a write whose answer was lost.
    if (found.holder !== undefined && found.holder.instance !== instance) return false
    const isTaken = yield* this.#write(found.revision).pipe(
      Effect.as(true),
      Effect.catchIf(isConflict, () => Effect.succeed(false))
    )
    if (!isTaken) return false
    yield* Effect.tapError(
      writeValue(this.#bucket, lastKey(this.partition), instance),
      () => this.#erase
    )
    return true
  })

  readonly renew = this.#writing.withPermit(
    Effect.suspend(() =>
      this.#isReleased || this.isLost() ? Effect.void : this.#noting(this.#renewOrReconsider())
    )
  )

  readonly failure = (): string | undefined => this.#failure

  readonly giveBack = this.#writing
    .withPermit(
      Effect.suspend(() => {
        if (this.#isReleased || this.isLost()) return Effect.undefined
        this.#isReleased = true
        this.#renewedAt = Number.NEGATIVE_INFINITY
        return this.#erase
      })
    )
    .pipe(Effect.timeoutOption("1 second"), Effect.map(Option.getOrUndefined))

  /** Runs a renewal that never fails, and notes why it did. */
  #noting<E extends Error, R>(renewal: Effect.Effect<void, E, R>): Effect.Effect<void, never, R> {
    this.#failure = undefined
    return Effect.catch(renewal, ({ message }) =>
      Effect.sync(() => {
        this.#failure = message
      })
    )
  }

  #read() {
    return Effect.map(readEntry(this.#bucket, leaseKey(this.partition)), ({ revision, text }) => ({
      revision,
      holder: Option.getOrUndefined(decodeLease(text ?? ""))
    }))
  }

  #write(expected: number) {
    return Effect.suspend(() => {
      const { instance, ttl, worker } = this.#owner
      const value = JSON.stringify({ worker, instance })
      const begun = elapsedMs()
      const life = this.#life()
      return Effect.map(
        writeValue(this.#bucket, leaseKey(this.partition), value, { ttl, expected }),
        ({ seq }) => {
          this.#revision = seq
          this.#renewedIn = life
          this.#renewedAt = begun
        }
      )
    })
  }

  /**
   * A truncated bucket reuses revisions: after a reconnect, another worker's lease may have this
   * revision, so the lease is read first.
   */
  #renewOrReconsider() {
    const life = this.#life()
    return life !== undefined && life === this.#renewedIn
      ? Effect.catchIf(this.#write(this.#revision), isConflict, () => this.#reconsider)
      : this.#reconsider
  }

  /**
   * Finds out whether an own write lost its answer, the lease expired, or another worker took it.
   */
  readonly #reconsider = Effect.gen({ self: this }, function* () {
    const { instance } = this.#owner
    const now = yield* this.#read()
    if (now.holder !== undefined && now.holder.instance !== instance)
      return yield* this.#lose(now.holder.worker)
    const last = yield* readEntry(this.#bucket, lastKey(this.partition))
    if (last.text !== instance) return yield* this.#lose(undefined)
    yield* this.#write(now.revision)
  })

  readonly #lose = Effect.fnUntraced({ self: this }, function* (to: string | undefined) {
    this.#renewedAt = Number.NEGATIVE_INFINITY
    yield* Effect.logWarning("another worker has taken a partition over", {
      partition: this.partition,
      owner: to
    })
    yield* Deferred.succeed(this.#lost, undefined)
  })

  /** Returns the revision that it left; undefined where the broker is gone and the lease expires. */
  readonly #erase = Effect.suspend(() =>
    eraseValue(this.#bucket, leaseKey(this.partition), this.#revision).pipe(
      Effect.map(({ seq }) => seq),
      Effect.timeoutOption("1 second"),
      Effect.option,
      Effect.map((found) => Option.getOrUndefined(Option.flatten(found)))
    )
  )
}

/** Pause between checks whether a lease was renewed, ms. */
const renewalPause = 250

/** Guards what a worker records about the deliveries of a partition. */
export interface OwnerFence {
  /** True while nobody else can be owner. Sends no request. */
  readonly holds: () => boolean
  /**
   * Returns true for the owner, and false once another worker owns or owned the partition. Waits
   * while that is unknown.
   */
  readonly stillOwner: Effect.Effect<boolean>
  /**
   * Passes for the owner, waits while ownership is unknown, and interrupts once another worker owns
   * or owned the partition: the new owner makes the decisions of the former one.
   */
  readonly asOwner: Effect.Effect<void>
}

/** Makes the fence of a partition from its lease. */
export const ownerFence = ({ holds, lost }: Pick<Ownership, "holds" | "lost">): OwnerFence => {
  const isRenewed = Effect.as(Effect.repeat(Effect.sleep(renewalPause), { until: holds }), true)
  const stillOwner = Effect.suspend(() =>
    holds() ? Effect.succeed(true) : Effect.raceFirst(Effect.as(lost, false), isRenewed)
  )
  return {
    holds,
    stillOwner,
    asOwner: Effect.flatMap(stillOwner, (isOwner) => (isOwner ? Effect.void : Effect.interrupt))
  }
}

/** A partition that this worker owns, from when it takes the lease until it releases it. */
export interface OwnedPartition {
  readonly ownership: Ownership
  /**
   * True once no new work may begin: the partition is to move or has moved to another worker, or
   * this worker stops.
   */
  readonly isOver: () => boolean
  /** Waits until `isOver` is true. */
  readonly over: Effect.Effect<void>
  /**
   * True where another worker waits for it, and for what is remembered of it. No more messages are
   * requested then, and it is over when the open request has ended, which takes a second.
   */
  readonly isAskedFor: () => boolean
}

/** A partition in the hands of this worker, until its lease is released. */
export class TakenPartition implements OwnedPartition {
  readonly ownership: Ownership
  readonly over: Effect.Effect<void>
  /** True once this worker delivers in it. */
  isBegun = false
  readonly #ended = Deferred.makeUnsafe<void>()
  readonly #released = Deferred.makeUnsafe<HandedOver | undefined>()
  #isAskedFor = false

  constructor(ownership: Ownership) {
    this.ownership = ownership
    this.over = Effect.raceFirst(Deferred.await(this.#ended), ownership.lost)
  }

  readonly isOver = (): boolean => Deferred.isDoneUnsafe(this.#ended) || this.ownership.isLost()

  readonly isAskedFor = (): boolean => this.#isAskedFor

  end(): void {
    Deferred.doneUnsafe(this.#ended, Effect.void)
  }

  /**
   * Lets it end for a worker that asks. Returns what waits until it is released, and returns
   * undefined where that failed.
   */
  handOver(): Effect.Effect<HandedOver | undefined> {
    this.#isAskedFor = true
    return Deferred.await(this.#released)
  }

  /** Called when its lease is released. */
  released(handed: HandedOver | undefined): void {
    Deferred.doneUnsafe(this.#released, Effect.succeed(handed))
  }
}
