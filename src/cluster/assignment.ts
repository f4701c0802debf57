import { Cause, Deferred, Effect, FiberSet, Option } from "effect"
import type { Broker } from "../broker/broker.ts"
import { shareOut } from "../policy/rendezvous.ts"
import type { Membership } from "./membership.ts"
import type { Owner, Ownership } from "./ownership.ts"
import { answerShare, beatsPerTtl, takeOwnership } from "./ownership.ts"

/** Pause before a partition whose delivery failed is released, to be taken again, ms. */
const retryPauseMs = 1_000

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
}

export interface AssignmentOptions<E, R> {
  readonly owner: Owner
  /** Number of partitions. */
  readonly partitions: number
  readonly membership: Membership
  readonly stopping: () => boolean
  readonly stopAsked: Effect.Effect<void>
  /**
   * Delivers until the partition is over and all work in it is settled. Calls `begun` once it
   * delivers.
   */
  readonly deliver: (holding: OwnedPartition, begun: () => void) => Effect.Effect<void, E, R>
  /** Called with the worker that each partition is assigned to, when that has changed. */
  readonly assigned: (owners: ReadonlyArray<string>) => void
  /** Called when this worker delivers in all partitions that are assigned to it. */
  readonly settled: (partitions: ReadonlyArray<number>) => Effect.Effect<void>
}

/**
 * Takes the partitions that are assigned to this worker as they become free, and releases those
 * that are assigned to others, until the worker stops and has released all. A partition is finished
 * before it is released: no other worker attempts what was begun here.
 */
export const maintainAssignment = Effect.fnUntraced(function* <E, R>(
  options: AssignmentOptions<E, R>
) {
  const fibers = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(fibers)<R | Broker>()
  const assignment = new Assignment(options, run)
  yield* Effect.forkScoped(assignment.keepRenewed)
  yield* assignment.keepCurrent
  yield* FiberSet.awaitEmpty(fibers)
}, Effect.scoped)

/** A partition in the hands of this worker, until its lease is released. */
class TakenPartition implements OwnedPartition {
  readonly ownership: Ownership
  readonly over: Effect.Effect<void>
  /** True once this worker delivers in it. */
  isBegun = false
  readonly #ended = Deferred.makeUnsafe<void>()
  readonly #stopping: () => boolean

  constructor(
    ownership: Ownership,
    { stopAsked, stopping }: Pick<AssignmentOptions<never, never>, "stopAsked" | "stopping">
  ) {
    this.ownership = ownership
    this.#stopping = stopping
    this.over = Effect.raceAllFirst([Deferred.await(this.#ended), ownership.lost, stopAsked])
  }

  readonly isOver = (): boolean =>
    this.#stopping() || Deferred.isDoneUnsafe(this.#ended) || this.ownership.isLost()

  end(): void {
    Deferred.doneUnsafe(this.#ended, Effect.void)
  }
}

/** The partitions of this worker, and what is assigned to it. */
class Assignment<E, R> {
  readonly #options: AssignmentOptions<E, R>
  readonly #run: (delivering: Effect.Effect<void, E, R | Broker>) => void
  readonly #taken = new Map<number, TakenPartition>()
  /** Completed when a partition has begun or ended. */
  #changed = Deferred.makeUnsafe<void>()
  /** True while a lease could not be renewed in time. */
  #isOverdue = false
  /** The owners that were last announced. */
  #announced = ""
  /** The partitions that were last reported as settled. */
  #settled = ""

  constructor(
    options: AssignmentOptions<E, R>,
    run: (delivering: Effect.Effect<void, E, R | Broker>) => void
  ) {
    this.#options = options
    this.#run = run
  }

  /** Takes and releases partitions until the worker stops. */
  readonly keepCurrent = Effect.gen({ self: this }, function* () {
    const { membership, owner, stopAsked, stopping } = this.#options
    while (!stopping()) {
      this.#changed = yield* Deferred.make<void>()
      yield* this.#follow
      yield* Effect.raceAllFirst([
        membership.changed,
        Deferred.await(this.#changed),
        Effect.sleep(owner.ttl / beatsPerTtl),
        stopAsked
      ])
    }
  })

  /** Renews the leases until it is interrupted. */
  readonly keepRenewed = Effect.suspend(() =>
    Effect.forever(
      Effect.andThen(Effect.sleep(this.#options.owner.ttl / beatsPerTtl), this.#renewAll)
    )
  )

  readonly #follow = Effect.gen({ self: this }, function* () {
    const { membership, owner, partitions } = this.#options
    if (!membership.isCurrent()) return
    const owners = shareOut(partitions, membership.sharers())
    this.#announce(owners)
    const mine = new Set(owners.flatMap((id, index) => (id === owner.worker ? [index] : [])))
    yield* this.#release(mine)
    yield* this.#take(mine)
    yield* this.#reportSettled(mine)
  })

  #announce(owners: ReadonlyArray<string>): void {
    const known = owners.join()
    if (known === this.#announced) return
    this.#announced = known
    this.#options.assigned(owners)
  }

  readonly #release = Effect.fnUntraced({ self: this }, function* (mine: ReadonlySet<number>) {
    const others = [...this.#taken.values()].filter(
      ({ isOver, ownership }) => !isOver() && !mine.has(ownership.partition)
    )
    if (others.length === 0) return
    yield* Effect.logInfo("other workers get partitions of this one", {
      partitions: others.map(({ ownership }) => ownership.partition)
    })
    for (const other of others) other.end()
  })

  readonly #take = Effect.fnUntraced({ self: this }, function* (mine: ReadonlySet<number>) {
    const { membership, owner } = this.#options
    if (!membership.mayTake()) return
    const free = [...mine].filter(
      (partition) => !this.#taken.has(partition) && membership.isFree(partition)
    )
    yield* Effect.forEach(
      free,
      (partition) =>
        takeOwnership(partition, owner).pipe(
          Effect.option,
          Effect.map(Option.flatMap(Option.fromUndefinedOr)),
          Effect.tap((taken) =>
            Effect.sync(() => {
              if (Option.isSome(taken)) this.#begin(taken.value)
            })
          )
        ),
      { concurrency: "unbounded", discard: true }
    )
  })

  #begin(ownership: Ownership): void {
    const mine = new TakenPartition(ownership, this.#options)
    this.#taken.set(ownership.partition, mine)
    this.#run(this.#deliver(mine))
  }

  /** Delivers in a partition until it is over, and releases it. */
  #deliver(mine: TakenPartition): Effect.Effect<void, E, R | Broker> {
    const { ownership } = mine
    const { partition } = ownership
    const begun = () => {
      mine.isBegun = true
      this.#notify()
    }
    const logTakeover = Effect.suspend(() =>
      ownership.isLost()
        ? Effect.logInfo("through with a partition that another worker has taken over", {
            partition
          })
        : Effect.void
    )
    return this.#options.deliver(mine, begun).pipe(
      Effect.andThen(logTakeover),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          Effect.andThen(
            Effect.logError("cannot deliver what is in a partition; trying again", cause, {
              partition
            }),
            Effect.raceFirst(Effect.sleep(retryPauseMs), mine.over)
          )
      ),
      Effect.ensuring(ownership.giveBack),
      Effect.ensuring(
        Effect.sync(() => {
          this.#taken.delete(partition)
          this.#notify()
        })
      )
    )
  }

  #notify(): void {
    Deferred.doneUnsafe(this.#changed, Effect.void)
  }

  readonly #renewAll = Effect.gen({ self: this }, function* () {
    const ownerships = [...this.#taken.values()].map(({ ownership }) => ownership)
    // A renewal whose answer is lost is repeated while the lease still lasts.
    const inTime = ({ renew }: Ownership) =>
      Effect.timeoutOption(renew, answerShare * this.#options.owner.ttl)
    const renewOne = (ownership: Ownership) =>
      Effect.flatMap(inTime(ownership), (done) =>
        Option.isSome(done) ? Effect.void : Effect.asVoid(inTime(ownership))
      )
    yield* Effect.forEach(ownerships, renewOne, { concurrency: "unbounded", discard: true })
    const late = ownerships.filter(
      ({ holds, partition }) => !holds() && this.#taken.get(partition)?.isOver() === false
    )
    if (late.length > 0 === this.#isOverdue) return
    this.#isOverdue = late.length > 0
    yield* this.#isOverdue
      ? Effect.logWarning(
          "the right to deliver cannot be renewed: nothing new is sent until it can"
        )
      : Effect.logInfo("the right to deliver is renewed again")
  })

  /** Reports that this worker delivers in all its partitions, once for each set of them. */
  readonly #reportSettled = Effect.fnUntraced(
    { self: this },
    function* (mine: ReadonlySet<number>) {
      const all = [...mine]
      if (!all.every((partition) => this.#taken.get(partition)?.isBegun === true)) return
      if (this.#taken.size > all.length || this.#settled === all.join()) return
      this.#settled = all.join()
      yield* this.#options.settled(all)
    }
  )
}
