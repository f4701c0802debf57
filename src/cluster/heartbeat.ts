import { hostname } from "node:os"
import { Clock, Deferred, Effect, Option, Schema, Semaphore } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { FeatureLevels } from "../broker/installed.ts"
import { eraseValue, isConflict, readEntry, writeValue } from "../broker/values.ts"
import { clockState } from "../policy/clock-skew.ts"
import { timers } from "../time/timers.ts"
import type { Owner } from "./ownership.ts"
import type { Heartbeat, Role } from "./roster.ts"
import { answerShare, beatsPerTtl, decodeHeartbeat, memberKey } from "./roster.ts"

/** A worker cannot start or continue. The message is the sentence that its user reads. */
export class WorkerRefused extends Schema.TaggedError<WorkerRefused>()("WorkerRefused", {
  message: Schema.String
}) {}

export interface HeartbeatOptions {
  readonly owner: Owner
  readonly roles: ReadonlyArray<Role>
  /** Load of the worker, per partition. */
  readonly load: Effect.Effect<Heartbeat["partitions"]>
  /** The partitions that are withheld from the worker. */
  readonly withheld: () => NonNullable<Heartbeat["withheld"]>
  /** How far the worker's clock is ahead of the broker's, or behind it (negative), ms. */
  readonly clockSkewMs: () => number
  /** Fails if the worker may not return after it was missed. */
  readonly mayReturn: Effect.Effect<void, WorkerRefused | BrokerError, Broker>
}

/**
 * Claims this worker's id and sends heartbeats until the scope closes. Fails if a live worker has
 * the id.
 */
export const startHeartbeat = Effect.fnUntraced(function* (options: HeartbeatOptions) {
  const { owner } = options
  const { names, onReconnect } = yield* Broker
  const context = yield* Effect.context<Broker>()
  const bucket = names.buckets.workers
  const revision = yield* claim(bucket, owner)
  const startedAt = yield* Clock.currentTimeMillis
  const { newest } = yield* FeatureLevels
  const own = new OwnHeartbeat(options, bucket, startedAt, newest, revision)
  const forgetReconnect = onReconnect(() => own.onReconnect())
  yield* Effect.addFinalizer(() => Effect.sync(forgetReconnect))
  yield* Effect.addFinalizer(() => Effect.provideContext(own.end, context))
  yield* own.begin
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.sleep(owner.ttl / beatsPerTtl), own.beat))
  )
  return own
})

/** This worker's heartbeat in the workers bucket. */
class OwnHeartbeat {
  readonly #options: HeartbeatOptions
  readonly #bucket: string
  readonly #key: string
  readonly #startedAt: number
  readonly #level: number
  readonly #host = hostname()
  /** Fails when the worker must stop. */
  readonly #replaced = Deferred.makeUnsafe<never, WorkerRefused>()
  /** Writes are serialized: a heartbeat after the erasure would show a worker that has ended. */
  readonly #writing = Semaphore.makeUnsafe(1)
  /** Revision that the next write expects. */
  #revision: number
  #isFirst = true
  #isLeaving = false
  #isEnded = false
  /**
   * Start of the current run of heartbeats without a gap, and time of the last one that was stored,
   * ms of the monotonic clock.
   */
  #soundSince = Number.NEGATIVE_INFINITY
  #soundAt = Number.NEGATIVE_INFINITY

  constructor(
    options: HeartbeatOptions,
    bucket: string,
    startedAt: number,
    level: number,
    revision: number
  ) {
    this.#options = options
    this.#bucket = bucket
    this.#key = memberKey(options.owner.worker)
    this.#startedAt = startedAt
    this.#level = level
    this.#revision = revision
  }

  /** True while this worker's heartbeats are stored without a gap. */
  isSound(): boolean {
    return timers.monotonicMs() - this.#soundAt < this.#options.owner.ttl / 2
  }

  /** True once heartbeats were stored for a whole TTL without a gap. */
  mayTake(): boolean {
    return this.isSound() && timers.monotonicMs() - this.#soundSince >= this.#options.owner.ttl
  }

  /** Others may have missed this worker while it had no connection. */
  onReconnect(): void {
    this.#soundAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Fails when another process has taken the id, or when this worker was missed and may not return.
   */
  get replaced(): Effect.Effect<never, WorkerRefused> {
    return Deferred.await(this.#replaced)
  }

  readonly #write = Effect.gen({ self: this }, function* () {
    const { clockSkewMs, load, owner, roles, withheld } = this.#options
    const missing = withheld()
    const skew = clockSkewMs()
    const { instance, ttl, worker } = owner
    const beat: Heartbeat = {
      v: 1,
      id: worker,
      instance,
      roles,
      host: this.#host,
      pid: process.pid,
      startedAt: this.#startedAt,
      level: this.#level,
      ...(this.#isLeaving ? { leaving: true } : {}),
      ...(this.#isFirst || this.mayTake() ? {} : { returning: true }),
      ...(missing.length === 0 ? {} : { withheld: missing }),
      ...(clockState(skew) === "right" ? {} : { clockSkewMs: skew }),
      partitions: yield* load
    }
    const expected = this.#revision
    const ack = yield* writeValue(this.#bucket, this.#key, JSON.stringify(beat), { ttl, expected })
    this.#revision = ack.seq
    this.#isFirst = false
    const now = timers.monotonicMs()
    if (!this.isSound()) this.#soundSince = now
    this.#soundAt = now
  })

  /** Writes the first heartbeat. */
  readonly begin = Effect.gen({ self: this }, function* () {
    yield* Effect.catchIf(this.#write, isConflict, () =>
      // Another process with this id was faster.
      Effect.flatMap(claim(this.#bucket, this.#options.owner), (found) => {
        this.#revision = found
        return this.#write
      })
    )
    // A worker that has just started need not wait for a former owner's return.
    this.#soundSince = Number.NEGATIVE_INFINITY
  })

  /** The heartbeat has expired, or another process has the id now: finds out which. */
  readonly #reconsider = Effect.gen({ self: this }, function* () {
    const found = yield* readEntry(this.#bucket, this.#key)
    const holder = Option.getOrUndefined(decodeHeartbeat(found.text ?? ""))
    if (holder !== undefined && holder.instance !== this.#options.owner.instance) {
      const message = `${whereabouts(holder)}, so this one stops`
      yield* Deferred.fail(this.#replaced, new WorkerRefused({ message }))
      return
    }
    yield* this.#options.mayReturn.pipe(
      Effect.tapError((error) =>
        error._tag === "WorkerRefused" ? Deferred.fail(this.#replaced, error) : Effect.void
      )
    )
    this.#revision = found.revision
    yield* this.#write
  })

  readonly #beatOnce = this.#writing.withPermit(
    Effect.suspend(() =>
      this.#isEnded
        ? Effect.void
        : Effect.ignore(Effect.catchIf(this.#write, isConflict, () => this.#reconsider))
    )
  )

  /** Sends a heartbeat. One whose answer is lost is repeated before the others miss it. */
  readonly beat = Effect.suspend(() => {
    const inTime = Effect.timeoutOption(this.#beatOnce, answerShare * this.#options.owner.ttl)
    return Effect.flatMap(inTime, (done) =>
      Option.isSome(done) ? Effect.void : Effect.asVoid(inTime)
    )
  })

  /** Announces that this worker no longer takes part, although it is still running. */
  readonly leave = Effect.suspend(() => {
    this.#isLeaving = true
    return Effect.asVoid(Effect.timeoutOption(this.beat, "1 second"))
  })

  /** Erases the heartbeat. */
  readonly end = this.#writing
    .withPermit(
      Effect.suspend(() => {
        if (this.#isEnded) return Effect.void
        this.#isEnded = true
        return eraseValue(this.#bucket, this.#key, this.#revision)
      })
    )
    .pipe(Effect.timeoutOption("1 second"), Effect.ignore)
}

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
      yield* Effect.logInfo(
        "a worker of this name was here recently; waiting to see whether it still is",
        {
          worker
        }
      )
    yield* Effect.sleep(ttl / beatsPerTtl / 4)
    found = yield* look
  }
  return found.revision
})
