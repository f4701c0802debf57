import { Cause, Deferred, Effect, FiberSet, Option } from "effect"
import type { Broker } from "../broker/connection.ts"
import { shareOut } from "../policy/rendezvous.ts"
import type { Membership } from "./membership.ts"
import { lostAfter, signs } from "./membership.ts"
import type { Owner, Ownership } from "./ownership.ts"
import { takeOwnership } from "./ownership.ts"

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
  /** Called when this worker delivers in all partitions that are assigned to it. */
  readonly settled: (partitions: ReadonlyArray<number>) => Effect.Effect<void>
}

interface Held extends OwnedPartition {
  readonly end: () => void
  begun: boolean
}

/**
 * Takes the partitions that are assigned to this worker as they become free, and releases those
 * that are assigned to others, until the worker stops and has released all. A partition is finished
 * before it is released: no other worker attempts what was begun here.
 */
export const maintainAssignment = Effect.fnUntraced(function* <E, R>(
  options: AssignmentOptions<E, R>
) {
  const { membership, owner, partitions, stopping } = options
  const held = new Map<number, Held>()
  const fibers = yield* FiberSet.make<void>()
  const run = yield* FiberSet.runtime(fibers)<R | Broker>()
  let looking = yield* Deferred.make<void>()
  const lookAgain = () => void Deferred.doneUnsafe(looking, Effect.void)

  const hold = (ownership: Ownership) =>
    Effect.gen(function* () {
      const over = yield* Deferred.make<void>()
      const mine: Held = {
        ownership,
        isOver: () => stopping() || Deferred.isDoneUnsafe(over) || ownership.isLost(),
        over: Effect.raceAllFirst([Deferred.await(over), ownership.lost, options.stopAsked]),
        end: () => void Deferred.doneUnsafe(over, Effect.void),
        begun: false
      }
      held.set(ownership.partition, mine)
      run(tend(mine))
    })

  const tend = (mine: Held) => {
    const { partition } = mine.ownership
    const begun = () => {
      mine.begun = true
      lookAgain()
    }
    const through = Effect.suspend(() =>
      mine.ownership.isLost()
        ? Effect.logInfo("through with a partition that another worker has taken over", {
            partition
          })
        : Effect.void
    )
    return options.deliver(mine, begun).pipe(
      Effect.andThen(through),
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
      Effect.ensuring(mine.ownership.giveBack),
      Effect.ensuring(
        Effect.sync(() => {
          held.delete(partition)
          lookAgain()
        })
      )
    )
  }

  let overdue = false
  const renewAll = Effect.gen(function* () {
    const ownerships = [...held.values()].map(({ ownership }) => ownership)
    // A renewal whose answer is lost is repeated while the lease still lasts.
    const inTime = ({ renew }: Ownership) => Effect.timeoutOption(renew, lostAfter * owner.ttl)
    const renewOne = (ownership: Ownership) =>
      Effect.flatMap(inTime(ownership), (done) =>
        Option.isSome(done) ? Effect.void : Effect.asVoid(inTime(ownership))
      )
    yield* Effect.forEach(ownerships, renewOne, { concurrency: "unbounded", discard: true })
    const late = ownerships.filter(
      ({ holds, partition }) => !holds() && held.get(partition)?.isOver() === false
    )
    if (late.length > 0 === overdue) return
    overdue = late.length > 0
    yield* overdue
      ? Effect.logWarning(
          "the right to deliver cannot be renewed: nothing new is sent until it can"
        )
      : Effect.logInfo("the right to deliver is renewed again")
  })
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(owner.ttl / signs), renewAll))
  )

  const giveUp = Effect.fnUntraced(function* (mine: ReadonlySet<number>) {
    const others = [...held.values()].filter(
      ({ isOver, ownership }) => !isOver() && !mine.has(ownership.partition)
    )
    if (others.length === 0) return
    yield* Effect.logInfo("other workers get partitions of this one", {
      partitions: others.map(({ ownership }) => ownership.partition)
    })
    for (const { end } of others) end()
  })

  const take = Effect.fnUntraced(function* (mine: ReadonlySet<number>) {
    if (!membership.mayTake()) return
    const free = [...mine].filter(
      (partition) => !held.has(partition) && membership.isFree(partition)
    )
    yield* Effect.forEach(
      free,
      (partition) =>
        takeOwnership(partition, owner).pipe(
          Effect.option,
          Effect.map(Option.flatMap(Option.fromUndefinedOr)),
          Effect.tap((taken) => (Option.isSome(taken) ? hold(taken.value) : Effect.void))
        ),
      { concurrency: "unbounded", discard: true }
    )
  })

  let told = ""
  const tell = Effect.fnUntraced(function* (mine: ReadonlySet<number>) {
    const all = [...mine]
    if (!all.every((partition) => held.get(partition)?.begun === true)) return
    if (held.size > all.length || told === all.join()) return
    told = all.join()
    yield* options.settled(all)
  })

  const once = Effect.gen(function* () {
    if (!membership.isCurrent()) return
    const owners = shareOut(partitions, membership.sharers())
    const mine = new Set(owners.flatMap((id, index) => (id === owner.worker ? [index] : [])))
    yield* giveUp(mine)
    yield* take(mine)
    yield* tell(mine)
  })
  while (!stopping()) {
    looking = yield* Deferred.make<void>()
    yield* once
    yield* Effect.raceAllFirst([
      membership.changed,
      Deferred.await(looking),
      Effect.sleep(owner.ttl / signs),
      options.stopAsked
    ])
  }
  yield* FiberSet.awaitEmpty(fibers)
}, Effect.scoped)
