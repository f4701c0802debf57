import { hostname } from "node:os"
import { Clock, Deferred, Effect, Option, Queue, Schema, Semaphore, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { readStream } from "../broker/scan.ts"
import { eraseValue, isConflict, writeValue } from "../broker/values.ts"
import { readEntry } from "./kv-entry.ts"
import type { Owner } from "./ownership.ts"
import type { Heartbeat, Role } from "./roster.ts"
import { decodeHeartbeat, memberKey, Roster, rosterSubjects } from "./roster.ts"

/** A worker cannot begin, or not go on. The message is the sentence its user reads. */
export class WorkerRefused extends Schema.TaggedError<WorkerRefused>()("WorkerRefused", {
  message: Schema.String
}) {}

/** How often a sign of life is given in the time after which it is missed. */
export const signs = 5
/** A write that has not been answered for this part of the time is taken for lost, and repeated. */
export const lostAfter = 0.3
/** Signs of others may come late: they are missed after so much of their life. */
const lostAfterFactor = 1.5
/** Pause before the others are looked for again after that failed, ms. */
const pollMs = 1_000

/** A worker among the others. */
export interface Membership {
  /** Ids of those who share the partitions, this one included. */
  readonly sharers: () => ReadonlyArray<string>
  /** True where nobody was heard to own the partition, lately. */
  readonly isFree: (partition: number) => boolean
  /**
   * True while what was heard of the others may be relied on: all that there was has been read, and
   * this worker's own signs of life are heard among them.
   */
  readonly isCurrent: () => boolean
  /**
   * True once this worker may take what was another's. After a gap it may not before a whole life
   * of a lease, in which whoever it belongs to may come back: a broker that was away for long would
   * else make everybody owner of everything.
   */
  readonly mayTake: () => boolean
  /** Waits until somebody has come or gone, or something has changed hands. */
  readonly changed: Effect.Effect<void>
  /** Tells the others that this worker takes part no more, though it is still there. */
  readonly leave: Effect.Effect<void>
  /** Erases the sign of life. */
  readonly end: Effect.Effect<void>
  /** Fails when another process has taken the id, or this one was missed and may not come back. */
  readonly replaced: Effect.Effect<never, WorkerRefused>
}

export interface MembershipOptions {
  readonly owner: Owner
  readonly roles: ReadonlyArray<Role>
  /** What it has in hand, per partition. */
  readonly load: Effect.Effect<Heartbeat["partitions"]>
  /** Fails where it may not come back after it was missed. */
  readonly mayReturn: Effect.Effect<void, WorkerRefused | BrokerError, Broker>
}

/**
 * Makes this worker one of those that others know of: gives signs of life until the scope closes,
 * and listens to theirs. Refuses an id that a worker has which is alive.
 */
export const join = Effect.fnUntraced(function* (options: MembershipOptions) {
  const { load, owner, roles } = options
  const { names, onReconnect } = yield* Broker
  const context = yield* Effect.context<Broker>()
  const bucket = names.buckets.workers
  const { instance, ttl, worker } = owner
  const key = memberKey(worker)
  const startedAt = yield* Clock.currentTimeMillis
  const host = hostname()
  let leaving = false
  let first = true
  const now = () => performance.now()

  let revision = yield* claim(bucket, owner)
  const replaced = yield* Deferred.make<never, WorkerRefused>()
  /** When signs of life began to come without a gap, and when the last one was taken. */
  let soundSince = Number.NEGATIVE_INFINITY
  let soundAt = Number.NEGATIVE_INFINITY
  const sound = () => {
    if (now() - soundAt > ttl / 2) soundSince = now()
    soundAt = now()
  }
  const isSound = () => now() - soundAt < ttl / 2
  const mayTake = () => isSound() && now() - soundSince >= ttl
  const forgetSound = onReconnect(() => {
    soundAt = Number.NEGATIVE_INFINITY
  })
  yield* Effect.addFinalizer(() => Effect.sync(forgetSound))

  const write = Effect.gen(function* () {
    const beat: Heartbeat = {
      v: 1,
      id: worker,
      instance,
      roles,
      host,
      pid: process.pid,
      startedAt,
      ...(leaving ? { leaving } : {}),
      ...(first || mayTake() ? {} : { returning: true }),
      partitions: yield* load
    }
    const ack = yield* writeValue(bucket, key, JSON.stringify(beat), { ttl, expected: revision })
    revision = ack.seq
    first = false
    sound()
  })
  /** It has ended by time, or somebody else has the id now. */
  const reconsider = Effect.gen(function* () {
    const found = yield* readEntry(bucket, key)
    const holder = Option.getOrUndefined(decodeHeartbeat(found.text ?? ""))
    if (holder !== undefined && holder.instance !== instance) {
      yield* Deferred.fail(
        replaced,
        new WorkerRefused({ message: `${whereabouts(holder)}, so this one stops` })
      )
      return
    }
    yield* options.mayReturn.pipe(
      Effect.tapError((error) =>
        error._tag === "WorkerRefused" ? Deferred.fail(replaced, error) : Effect.void
      )
    )
    revision = found.revision
    yield* write
  })
  const one = yield* Semaphore.make(1)
  let ended = false
  const beatOnce = one.withPermit(
    Effect.suspend(() =>
      ended ? Effect.void : Effect.ignore(Effect.catchIf(write, isConflict, () => reconsider))
    )
  )
  /** One whose answer is lost is given again while others would still be content. */
  const beat = Effect.flatMap(Effect.timeoutOption(beatOnce, lostAfter * ttl), (done) =>
    Option.isSome(done)
      ? Effect.void
      : Effect.asVoid(Effect.timeoutOption(beatOnce, lostAfter * ttl))
  )
  const erase = one.withPermit(
    Effect.suspend(() => {
      if (ended) return Effect.void
      ended = true
      return eraseValue(bucket, key, revision)
    })
  )
  const end = Effect.timeoutOption(erase, "1 second").pipe(
    Effect.ignore,
    Effect.provideContext(context)
  )
  yield* Effect.addFinalizer(() => end)
  yield* Effect.catchIf(write, isConflict, () =>
    // Another of this id was faster by a moment.
    Effect.flatMap(claim(bucket, owner), (found) => {
      revision = found
      return write
    })
  )
  soundSince = Number.NEGATIVE_INFINITY
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(ttl / signs), beat)))

  const { changes, isComplete, roster } = yield* listen(bucket, ttl, isSound)
  const isAlive = (at: number) => now() - at < ttl * lostAfterFactor
  const own = () => {
    const heard = roster().members.get(worker)
    return heard?.said.instance === instance && isAlive(heard.at)
  }
  const membership: Membership = {
    sharers: () => {
      const others = [...roster().members.values()]
        .filter(
          ({ at, said }) =>
            isAlive(at) &&
            said.leaving !== true &&
            // Nobody is to give up for its sake what it may not take.
            said.returning !== true &&
            said.roles.includes("deliver")
        )
        .map(({ said }) => said.id)
      return others.includes(worker) ? others : [...others, worker]
    },
    isFree: (partition) => {
      const heard = roster().leases.get(partition)
      return heard === undefined || !isAlive(heard.at) || heard.said.instance === instance
    },
    isCurrent: () => isComplete() && own(),
    mayTake,
    changed: Queue.take(changes),
    leave: Effect.provideContext(
      Effect.suspend(() => {
        leaving = true
        return Effect.asVoid(Effect.timeoutOption(beat, "1 second"))
      }),
      context
    ),
    end,
    replaced: Deferred.await(replaced)
  }
  return membership
})

const whereabouts = ({ host, id, pid }: Heartbeat): string =>
  `a worker named ${id} is running already (on ${host}, process ${pid})`

/**
 * Waits until nobody has this worker's id, and gives the revision to write over. A worker that was
 * killed is there until its time is over; one that gives a sign of life meanwhile is alive.
 */
const claim = Effect.fnUntraced(function* (bucket: string, { ttl, worker }: Owner) {
  const look = readEntry(bucket, memberKey(worker))
  const first = yield* look
  let found = first
  while (found.text !== undefined) {
    const holder = Option.getOrUndefined(decodeHeartbeat(found.text))
    if (holder !== undefined && found.revision !== first.revision)
      return yield* new WorkerRefused({
        message: `${whereabouts(holder)}: give this one another name with --id, or stop that one first`
      })
    if (found === first)
      yield* Effect.logInfo("a worker of this name was here lately; waiting whether it still is", {
        worker
      })
    yield* Effect.sleep(ttl / signs / 4)
    found = yield* look
  }
  return found.revision
})

/**
 * Reads who is there and who owns what, for as long as the scope lives.
 *
 * @param isSound true while own signs of life are taken.
 */
const listen = Effect.fnUntraced(function* (bucket: string, ttl: number, isSound: () => boolean) {
  const { onReconnect } = yield* Broker
  const changes = yield* Queue.sliding<void>(1)
  const tell = () => Queue.offerUnsafe(changes, undefined)
  let roster = new Roster()
  let complete = false
  /** By a monotonic clock, ms. */
  let heardAt = performance.now()

  const readOnce = Effect.scoped(
    Effect.gen(function* () {
      const again = yield* Deferred.make<void>()
      const forget = onReconnect(() => Deferred.doneUnsafe(again, Effect.void))
      yield* Effect.addFinalizer(() => Effect.sync(forget))
      roster = new Roster()
      complete = false
      heardAt = performance.now()
      const follow = Stream.runForEach(
        readStream({ stream: `KV_${bucket}`, subjects: rosterSubjects(bucket), follow: true }),
        (message) =>
          Effect.sync(() => {
            heardAt = performance.now()
            const changed = roster.hear(message.subject, message.string(), heardAt)
            const wasComplete = complete
            complete ||= message.info.pending === 0
            if (complete && (changed || !wasComplete)) tell()
          })
      )
      // Own signs of life come by several times in a lease's life: silence means that it broke off.
      // Not so while there is no broker: a reading that begins then outlasts its absence.
      const silence = Effect.repeat(Effect.sleep(ttl / signs), {
        until: () => isSound() && performance.now() - heardAt > ttl
      })
      yield* Effect.raceFirst(follow, Effect.raceFirst(Deferred.await(again), silence))
    })
  )
  yield* readOnce.pipe(
    Effect.catch((error) =>
      Effect.andThen(
        Effect.logDebug("listening to the other workers failed; trying again", {
          why: error.message
        }),
        Effect.sleep(pollMs)
      )
    ),
    Effect.forever,
    Effect.forkScoped
  )
  return { changes, roster: () => roster, isComplete: () => complete }
})
