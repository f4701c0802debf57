import { Cause, Deferred, Effect, FiberSet, Option } from "effect"
import { Broker } from "../broker/broker.ts"
import { shareOut } from "../policy/rendezvous.ts"
import type { PartitionOwners } from "../policy/shares.ts"
import { timers } from "../time/timers.ts"
import type { HandOverRequest, WithheldPartitions } from "./hand-over.ts"
import { answerHandOvers, askForPartition } from "./hand-over.ts"
import type { Membership } from "./membership.ts"
import type { OwnedPartition, Owner, Ownership } from "./ownership.ts"
import { TakenPartition, takeOwnership } from "./ownership.ts"
import type { Lease } from "./roster.ts"
import { answerShare, beatsPerTtl } from "./roster.ts"

/** Pause before a partition whose delivery failed is released, to be taken again, ms. */
const retryPauseMs = 1_000
/** Pause before an owner that refused to hand a partition over is asked for it again, ms. */
const askAgainMs = 250
/**
 * One of this many partitions may be on its way to a worker at a time, and as many from a worker: at
 * least one.
 */
const partitionsPerMove = 8
/**
 * Part of the TTL for which nobody is asked for a partition after a worker has come. Others that are
 * started at the same time come within it: each of them changes the shares, and a partition would move
 * twice.
 */
const settleShare = 0.15
/** How long a worker that stops waits while nobody asks for what it has, ms. */
const maxUnaskedMs = 3_000
/**
 * How long a worker that had no partition waits after the first one that it is handed, before it asks
 * for more, ms. Its code is cold: what comes meanwhile waits in one partition, not in several. Shorter
 * than `maxUnaskedMs`, so that a worker that stops is asked in time.
 */
const warmUpMs = 2_000
/** Interval at which a worker that stops checks whether it is still asked, ms. */
const leavePauseMs = 50

interface AssignmentOptions<E, R> {
  readonly owner: Owner
  /** Number of partitions. */
  readonly partitions: number
  readonly membership: Membership
  readonly stopping: () => boolean
  readonly stopAsked: Effect.Effect<void>
  /** How long a stop lets other workers ask for partitions one after the other, ms. */
  readonly leaveWithin: number
  /**
   * Delivers until the partition is over and all work in it is settled. Calls `begun` once it
   * delivers. Returns what is remembered of the partition, where another worker has asked for it and
   * need not read the history.
   *
   * @param memory what the owner before remembered. (Default: it is read from the history)
   */
  readonly deliver: (
    owned: OwnedPartition,
    begun: () => void,
    memory: Uint8Array | undefined
  ) => Effect.Effect<Uint8Array | undefined, E, R>
  /** Where it notes what live owners do not hand over. */
  readonly withheld: WithheldPartitions
  /**
   * Called when it delivers in a partition, with the time since it took the lease, ms.
   *
   * @param isHanded true where a live owner has handed it over.
   */
  readonly moved: (isHanded: boolean, ms: number) => void
  /** Called with the workers that may send in each partition, when that has changed. */
  readonly assigned: (owners: PartitionOwners) => void
  /** Called when this worker delivers in all partitions that are assigned to it. */
  readonly settled: (partitions: ReadonlyArray<number>) => Effect.Effect<void>
}

/**
 * Takes the partitions that are assigned to this worker, and hands those over that others ask for,
 * until the worker stops and has released all. It takes what nobody owns at once, and asks the live
 * owners of the rest, for a few partitions at a time. A partition is finished before it is released:
 * no other worker attempts what was begun here.
 */
export const maintainAssignment = Effect.fnUntraced(function* <E, R>(
  options: AssignmentOptions<E, R>
) {
  const delivering = yield* FiberSet.make<void>()
  const asking = yield* FiberSet.make<void>()
  const assignment = new Assignment(
    options,
    yield* FiberSet.runtime(delivering)<R | Broker>(),
    yield* FiberSet.runtime(asking)<Broker>()
  )
  yield* answerHandOvers(options.owner.instance, assignment.handOver)
  yield* Effect.forkScoped(assignment.keepRenewed)
  yield* assignment.keepCurrent
  yield* FiberSet.clear(asking)
  yield* assignment.leave
  yield* FiberSet.awaitEmpty(delivering)
}, Effect.scoped)

/** The partitions of this worker, and what is assigned to it. */
class Assignment<E, R> {
  readonly #options: AssignmentOptions<E, R>
  readonly #deliverInFiber: (delivering: Effect.Effect<void, never, R | Broker>) => void
  readonly #askInFiber: (asking: Effect.Effect<void, never, Broker>) => void
  readonly #maxMoves: number
  readonly #taken = new Map<number, TakenPartition>()
  /** The partitions whose owners are being asked for them, or have refused them just now. */
  readonly #asked = new Set<number>()
  /** The workers that were there last, and when one was new, ms of the monotonic clock. */
  #sharers: ReadonlySet<string> = new Set()
  #joinedAt = Number.NEGATIVE_INFINITY
  /** Number of owners that are being asked. */
  #asking = 0
  /** True for a while after its first partition was handed to it. */
  #isWarmingUp = false
  /** Completed when a partition has begun or ended. */
  #changed = Deferred.makeUnsafe<void>()
  /** True while a lease could not be renewed in time. */
  #isOverdue = false
  /** The owners that were last announced. */
  #announced = ""
  /** The partitions that were last reported as settled: none is a report as well. */
  #settled: string | undefined

  constructor(
    options: AssignmentOptions<E, R>,
    deliverInFiber: (delivering: Effect.Effect<void, never, R | Broker>) => void,
    askInFiber: (asking: Effect.Effect<void, never, Broker>) => void
  ) {
    this.#options = options
    this.#deliverInFiber = deliverInFiber
    this.#askInFiber = askInFiber
    this.#maxMoves = Math.max(1, Math.floor(options.partitions / partitionsPerMove))
  }

  /** Takes partitions until the worker stops. */
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

  /**
   * Delivers on while other workers take the partitions over one after the other, then ends what is
   * left.
   */
  readonly leave = Effect.gen({ self: this }, function* () {
    const { leaveWithin, membership } = this.#options
    const begun = timers.monotonicMs()
    let movedAt = begun
    let left = this.#taken.size
    const isAsked = () => {
      const now = timers.monotonicMs()
      if (this.#moves > 0 || this.#taken.size < left) movedAt = now
      left = this.#taken.size
      return left > 0 && now - movedAt < maxUnaskedMs && now - begun < leaveWithin
    }
    while (isAsked() && membership.sharers().length > 0) yield* Effect.sleep(leavePauseMs)
    for (const taken of this.#taken.values()) taken.end()
  })

  /** Renews the leases until it is interrupted. */
  readonly keepRenewed = Effect.suspend(() =>
    Effect.forever(
      Effect.andThen(Effect.sleep(this.#options.owner.ttl / beatsPerTtl), this.#renewAll)
    )
  )

  /** Begins to hand a partition over to the worker that asks, if it is assigned to that one. */
  readonly handOver = ({ partition, worker }: HandOverRequest) => {
    const taken = this.#taken.get(partition)
    const { membership, owner } = this.#options
    const mayGo =
      taken?.isBegun === true &&
      !taken.isOver() &&
      !taken.isAskedFor() &&
      worker !== owner.worker &&
      this.#moves < this.#maxMoves &&
      membership.isCurrent() &&
      this.#owners()[partition] === worker
    return mayGo
      ? Effect.andThen(
          Effect.logInfo("hands a partition over to another worker", { partition, to: worker }),
          taken.handOver()
        )
      : undefined
  }

  /** Number of partitions that are being handed over. */
  get #moves(): number {
    let moves = 0
    for (const taken of this.#taken.values()) if (taken.isAskedFor()) moves++
    return moves
  }

  #owners(): ReadonlyArray<string> {
    const { membership, partitions } = this.#options
    return shareOut(partitions, membership.sharers())
  }

  /** Returns true while further workers may be about to join. */
  #isSettling(): boolean {
    const { membership, owner } = this.#options
    const sharers = membership.sharers()
    const now = timers.monotonicMs()
    if (sharers.some((id) => !this.#sharers.has(id))) this.#joinedAt = now
    this.#sharers = new Set(sharers)
    return now - this.#joinedAt < settleShare * owner.ttl
  }

  readonly #follow = Effect.gen({ self: this }, function* () {
    const { membership, owner } = this.#options
    if (!membership.isCurrent()) return
    const owners = this.#owners()
    this.#announce(owners)
    const mine = new Set(owners.flatMap((id, index) => (id === owner.worker ? [index] : [])))
    if (membership.mayTake()) {
      const lacking = [...mine].filter((partition) => !this.#taken.has(partition))
      this.#options.withheld.keep(lacking)
      const missing = lacking.filter((partition) => !this.#asked.has(partition))
      yield* this.#take(missing.filter((partition) => membership.holder(partition) === undefined))
      if (!this.#isSettling() && !this.#isWarmingUp) this.#ask(missing)
    }
    yield* this.#reportSettled(mine)
  })

  /**
   * Announces who may send in each partition. A worker that was missed for some seconds is assigned
   * nothing for a while, but it sends on in what it has.
   */
  #announce(assigned: ReadonlyArray<string>): void {
    const { membership, owner } = this.#options
    const owners = assigned.map((id, partition) => {
      const holder = this.#taken.has(partition)
        ? owner.worker
        : membership.holder(partition)?.worker
      return holder === undefined || holder === id ? [id] : [id, holder]
    })
    const known = JSON.stringify(owners)
    if (known === this.#announced) return
    this.#announced = known
    this.#options.assigned(owners)
  }

  /** Takes partitions that nobody owns. */
  readonly #take = (free: ReadonlyArray<number>) =>
    Effect.forEach(
      free,
      (partition) =>
        Effect.map(
          Effect.option(takeOwnership(partition, this.#options.owner)),
          Option.map((taken) => this.#begin(taken, undefined))
        ),
      { concurrency: "unbounded", discard: true }
    )

  /** Asks the owners of partitions for them. */
  #ask(missing: ReadonlyArray<number>): void {
    for (const partition of missing) {
      const holder = this.#options.membership.holder(partition)
      if (holder === undefined) continue
      if (this.#asking >= this.#maxMoves) return
      this.#asking++
      this.#asked.add(partition)
      this.#askInFiber(
        this.#askOne(partition, holder).pipe(
          Effect.ensuring(
            Effect.sync(() => {
              this.#asking--
              this.#notify()
            })
          ),
          Effect.flatMap((isTaken) => (isTaken ? Effect.void : Effect.sleep(askAgainMs))),
          Effect.ensuring(
            Effect.sync(() => {
              this.#asked.delete(partition)
              this.#notify()
            })
          )
        )
      )
    }
  }

  /** Returns true where the partition was released, whoever has it now. */
  readonly #askOne = Effect.fnUntraced(
    { self: this },
    function* (partition: number, holder: Lease) {
      const { owner, stopping, withheld } = this.#options
      const { life } = yield* Broker
      const askedIn = life()
      const handed = yield* askForPartition(holder.instance, partition, owner.worker)
      if (handed === "unanswered") {
        if (withheld.unanswered(partition, holder.worker))
          yield* Effect.logWarning(
            "a worker does not hand a partition over: it has just died, and the partition moves by itself; or its version is older, or its user or this one may not use the subjects of hand-overs (nats.conf), and the partition stays there until that worker stops",
            { partition, owner: holder.worker }
          )
        return false
      }
      withheld.answered(partition)
      if (handed === "refused") return false
      // A broker that lost the end of its bucket gives a revision again.
      if (stopping() || askedIn === undefined || life() !== askedIn) return true
      const taken = yield* Effect.option(takeOwnership(partition, owner, handed.released))
      if (Option.isSome(taken)) {
        if (this.#taken.size === 0) this.#warmUp()
        this.#begin(taken.value, handed.memory)
      }
      return true
    }
  )

  #warmUp(): void {
    this.#isWarmingUp = true
    const warm = Effect.sync(() => {
      this.#isWarmingUp = false
      this.#notify()
    })
    this.#askInFiber(Effect.andThen(Effect.sleep(warmUpMs), warm))
  }

  #begin(ownership: Ownership | undefined, memory: Uint8Array | undefined): void {
    if (ownership === undefined) return
    const mine = new TakenPartition(ownership)
    if (this.#options.stopping()) mine.end()
    this.#taken.set(ownership.partition, mine)
    this.#deliverInFiber(this.#deliver(mine, memory))
  }

  /** Delivers in a partition until it is over, and releases it. */
  #deliver(
    mine: TakenPartition,
    memory: Uint8Array | undefined
  ): Effect.Effect<void, never, R | Broker> {
    const { ownership } = mine
    const { partition } = ownership
    let remembered: Uint8Array | undefined
    const takenAt = timers.monotonicMs()
    const begun = () => {
      mine.isBegun = true
      this.#options.moved(memory !== undefined, timers.monotonicMs() - takenAt)
      this.#notify()
    }
    const logTakeover = Effect.suspend(() =>
      ownership.isLost()
        ? Effect.logInfo("through with a partition that another worker has taken over", {
            partition
          })
        : Effect.void
    )
    const release = Effect.map(ownership.giveBack, (released) => {
      this.#taken.delete(partition)
      mine.released(released === undefined ? undefined : { released, memory: remembered })
      this.#notify()
    })
    return this.#options.deliver(mine, begun, memory).pipe(
      Effect.flatMap((found) => {
        remembered = found
        return logTakeover
      }),
      Effect.catchCause((cause) =>
        Cause.hasInterrupts(cause)
          ? Effect.interrupt
          : Effect.andThen(
              Effect.logError("cannot deliver what is in a partition; trying again", cause, {
                partition
              }),
              Effect.raceFirst(Effect.sleep(retryPauseMs), mine.over)
            )
      ),
      Effect.ensuring(release)
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
    const why = late.map(({ failure }) => failure()).find((failure) => failure !== undefined)
    yield* this.#isOverdue
      ? Effect.logWarning(
          `the right to deliver cannot be renewed${why === undefined ? "" : ` (${why})`}: nothing new is sent until it can`
        )
      : Effect.logInfo("the right to deliver is renewed again")
  })

  /** Reports that this worker delivers in all its partitions, once for each set of them. */
  readonly #reportSettled = Effect.fnUntraced(
    { self: this },
    function* (mine: ReadonlySet<number>) {
      const { membership, owner } = this.#options
      // Until it is counted among those that share, it is not known what is assigned to it.
      if (this.#settled === undefined && !membership.sharers().includes(owner.worker)) return
      const all = [...mine]
      if (!all.every((partition) => this.#taken.get(partition)?.isBegun === true)) return
      if (this.#taken.size > all.length || this.#settled === all.join()) return
      this.#settled = all.join()
      yield* this.#options.settled(all)
    }
  )
}
