import { hostname } from "node:os"
import { Clock, Deferred, Effect, Option, Queue, Schema, Semaphore, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { readStream } from "../broker/scan.ts"
import { eraseValue, isConflict, writeValue } from "../broker/values.ts"
import { timers } from "../time/timers.ts"
import { readEntry } from "./kv-entry.ts"
import type { Owner } from "./ownership.ts"
import type { Heartbeat, Role } from "./roster.ts"
import { decodeHeartbeat, memberKey, Roster, rosterSubjects } from "./roster.ts"

/** A worker cannot start or continue. The message is the sentence that its user reads. */
export class WorkerRefused extends Schema.TaggedError<WorkerRefused>()("WorkerRefused", {
  message: Schema.String
}) {}

/** Heartbeats and lease renewals per TTL. */
export const signs = 5
/** Share of the TTL after which an unanswered write counts as lost and is repeated. */
export const lostAfter = 0.3
/** Heartbeats of others may arrive late: they expire after this multiple of the TTL. */
const lostAfterFactor = 1.5
/** Pause before the roster is read again after a failure, ms. */
const pollMs = 1_000

/** This worker's view of the cluster, and its place in it. */
export interface Membership {
  /** Ids of the workers that share the partitions, this one included. */
  readonly sharers: () => ReadonlyArray<string>
  /** True if no lease of another worker on the partition is known to be valid. */
  readonly isFree: (partition: number) => boolean
  /**
   * True while the roster is reliable: it has been read completely, and it shows this worker's own
   * heartbeats.
   */
  readonly isCurrent: () => boolean
  /**
   * True once this worker may take partitions that belonged to another. After a gap in its
   * heartbeats it must wait for a whole TTL, in which the former owner may come back: otherwise,
   * after a long outage of the broker, every worker would take every partition.
   */
  readonly mayTake: () => boolean
  /** Waits until a worker has joined or left, or a lease has changed hands. */
  readonly changed: Effect.Effect<void>
  /** Announces that this worker no longer takes part, although it is still running. */
  readonly leave: Effect.Effect<void>
  /** Erases the heartbeat. */
  readonly end: Effect.Effect<void>
  /**
   * Fails when another process has taken the id, or when this worker was missed and may not return.
   */
  readonly replaced: Effect.Effect<never, WorkerRefused>
}

export interface MembershipOptions {
  readonly owner: Owner
  readonly roles: ReadonlyArray<Role>
  /** Load of the worker, per partition. */
  readonly load: Effect.Effect<Heartbeat["partitions"]>
  /** Fails if the worker may not return after it was missed. */
  readonly mayReturn: Effect.Effect<void, WorkerRefused | BrokerError, Broker>
}

/**
 * Joins the cluster: sends heartbeats until the scope closes, and listens to those of others. Fails
 * if a live worker has the id.
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
  const now = () => timers.monotonicMs()

  let revision = yield* claim(bucket, owner)
  const replaced = yield* Deferred.make<never, WorkerRefused>()
  /**
   * Start of the current run of heartbeats without a gap, and time of the last one that was stored.
   */
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
  /** The heartbeat has expired, or another process has the id now: finds out which. */
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
  /** A heartbeat whose answer is lost is repeated before the others miss it. */
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
    // Another process with this id was faster.
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
            // Nobody should release partitions for a worker that may not take them.
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
 * Waits until nobody has this worker's id, and returns the revision to write over. The heartbeat of
 * a killed worker stays until it expires; a worker that sends another one meanwhile is alive.
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
 * Keeps the roster of workers and leases current until the scope closes.
 *
 * @param isSound true while this worker's own heartbeats are stored.
 */
const listen = Effect.fnUntraced(function* (bucket: string, ttl: number, isSound: () => boolean) {
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
      const silence = Effect.repeat(Effect.sleep(ttl / signs), {
        until: () => isSound() && timers.monotonicMs() - heardAt > ttl
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
