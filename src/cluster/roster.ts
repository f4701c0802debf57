import { Deferred, Effect, Option, Queue, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readPartitions } from "../broker/installed.ts"
import { keepGoing } from "../broker/keep-going.ts"
import { type ReadMessage, readStream, storedAt } from "../broker/scan.ts"
import { hasOutlived, valueIn } from "../broker/values.ts"
import { timers } from "../time/timers.ts"

/** Heartbeats and lease renewals per TTL. */
export const beatsPerTtl = 5
/**
 * Share of the TTL after which an unanswered write counts as lost and is repeated. With the pause
 * before the write it stays well below half the TTL, after which a worker counts as missed.
 */
export const answerShare = 0.2

/** What a worker does: it routes events, delivers, or both. */
export const Role = Schema.Literals(["router", "deliver"])
export type Role = typeof Role.Type

/** A worker's heartbeat. */
export const Heartbeat = Schema.Struct({
  v: Schema.Literal(1),
  id: Schema.String,
  /** Random: two processes may have been given the same id. */
  instance: Schema.String,
  roles: Schema.Array(Role),
  host: Schema.String,
  pid: Schema.Int,
  /** ms since the epoch */
  startedAt: Schema.Int,
  /** The newest feature level that it knows. (Default: 1) */
  level: Schema.optionalKey(Schema.Int),
  /** True if the worker is stopping and hands over its partitions. */
  leaving: Schema.optionalKey(Schema.Boolean),
  /** The partitions that their live owners do not hand over to it, for a while now. */
  withheld: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        partition: Schema.Int.annotateKey({ description: "The index of the partition." }),
        owner: Schema.String.annotateKey({ description: "The worker that owns it." })
      })
    )
  ).annotateKey({ description: "Partitions of its share that their owners do not hand over." }),
  /**
   * How far its clock is ahead of the broker's, or behind it (negative), at least, ms. Absent while
   * they agree. Beyond 30 s it sends nothing.
   */
  clockSkewMs: Schema.optionalKey(Schema.Number),
  /** True if the worker was missed for a while and may not take partitions yet. */
  returning: Schema.optionalKey(Schema.Boolean),
  /**
   * Deliveries in flight and in memory, for each partition in which it delivers: not while it takes
   * one over, or finishes what is in flight to hand it on.
   */
  partitions: Schema.Array(
    Schema.Struct({
      partition: Schema.Int.annotateKey({ description: "The index of the partition." }),
      inFlight: Schema.Int,
      inMemory: Schema.Int
    })
  )
})
export type Heartbeat = typeof Heartbeat.Type

/** Returns the newest feature level that a worker knows. */
export const levelOfWorker = ({ level = 1 }: Heartbeat): number => level

/** The value of a partition's lease. */
export const Lease = Schema.Struct({ worker: Schema.String, instance: Schema.String })
export type Lease = typeof Lease.Type

export const decodeHeartbeat = Schema.decodeUnknownOption(Schema.fromJsonString(Heartbeat))
export const decodeLease = Schema.decodeUnknownOption(Schema.fromJsonString(Lease))

/** Keys in the workers bucket. */
export const memberKey = (id: string): string => `worker.${id}`
export const leaseKey = (partition: number): string => `owner.${partition}`

/** The subjects of all heartbeats and leases in a bucket. */
const rosterSubjects = (bucket: string): ReadonlyArray<string> => [
  `$KV.${bucket}.worker.*`,
  `$KV.${bucket}.owner.*`
]

/** A value of the bucket, and when it arrived, ms of the monotonic clock. */
interface Heard<A> {
  readonly said: A
  readonly at: number
}

/** The workers and leases known from the workers bucket. */
export class Roster {
  readonly members = new Map<string, Heard<Heartbeat>>()
  readonly leases = new Map<number, Heard<Lease>>()

  /**
   * Applies a message of the bucket; one without a body means that the value has ended. Other values
   * of the bucket are skipped.
   *
   * @returns true if a worker joined or left or changed its state, or a lease changed hands.
   */
  hear(subject: string, text: string, at: number): boolean {
    const [kind, name = ""] = subject.split(".").slice(-2)
    if (kind === "worker") return this.#hearMember(name, text, at)
    return kind === "owner" && this.#hearLease(name, text, at)
  }

  #hearMember(id: string, text: string, at: number): boolean {
    const before = this.members.get(id)?.said
    const said = Option.getOrUndefined(decodeHeartbeat(text))
    if (said === undefined) return this.members.delete(id)
    this.members.set(id, { said, at })
    return (
      before?.instance !== said.instance ||
      before.leaving !== said.leaving ||
      before.returning !== said.returning
    )
  }

  #hearLease(name: string, text: string, at: number): boolean {
    const partition = Number(name)
    const before = this.leases.get(partition)?.said
    const said = Option.getOrUndefined(decodeLease(text))
    if (said === undefined) return this.leases.delete(partition)
    this.leases.set(partition, { said, at })
    return before?.instance !== said.instance
  }
}

/** A worker and the partitions it owns. */
export interface Present {
  readonly id: string
  /** Undefined if the worker sends no heartbeats any more but its leases have not expired. */
  readonly heartbeat: Heartbeat | undefined
  readonly partitions: ReadonlyArray<number>
}

/** How often the bucket is read on, where something has come at its end since. */
const maxPasses = 4

/** Reads all of the bucket of workers, and the roster in it. */
export const readWorkersBucket = Effect.gen(function* () {
  const { names } = yield* Broker
  const bucket = names.buckets.workers
  const roster = new Roster()
  /** When leases ended that no other lease has replaced, by partition, ms since the epoch. */
  const ended = new Map<number, number>()
  // With the few other values, as there are few requests for one subject, and several for two.
  const subjects = [`$KV.${bucket}.>`]
  const latest = new Map<string, ReadMessage>()
  // What is renewed while the bucket is read may lie behind the reader and, a moment later, beyond its
  // end: a worker or an owner would be missing.
  let start: { readonly fromSeq?: number } = {}
  for (let pass = 0; pass < maxPasses; pass++) {
    const read = readStream({ stream: `KV_${bucket}`, subjects, ...start })
    const messages = yield* Stream.runCollect(read)
    for (const message of messages) latest.set(message.subject, message)
    const last = messages.at(-1)
    if (last === undefined) break
    start = { fromSeq: last.seq + 1 }
  }
  const messages = yield* Effect.filter(latest.values(), (message) =>
    Effect.map(
      hasOutlived(bucket, message.headers?.get("Nats-TTL"), storedAt(message)),
      (outlived) => !outlived
    )
  )
  for (const message of messages) {
    const { data, subject } = message
    roster.hear(subject, message.string(), 0)
    const [kind, partition] = subject.split(".").slice(-2)
    if (kind === "owner" && data.length === 0) ended.set(Number(partition), storedAt(message))
  }
  return { roster, ended, values: messages.flatMap((message) => valueIn(bucket, message)) }
})

/** Reads the roster once. */
export const readRoster = Effect.map(readWorkersBucket, ({ roster }) => roster)

/** Returns the workers in a roster, in the order of their ids. */
export const presentIn = ({ leases, members }: Roster): ReadonlyArray<Present> => {
  const owners = [...leases.values()].map(({ said }) => said.worker)
  return [...new Set([...members.keys(), ...owners])].sort().map((id) => ({
    id,
    heartbeat: members.get(id)?.said,
    partitions: [...leases]
      .filter(([, { said }]) => said.worker === id)
      .map(([partition]) => partition)
      .sort((a, b) => a - b)
  }))
}

/** Reads the workers, and the partitions that nobody owns. */
export const readPresent = Effect.gen(function* () {
  const partitions = yield* readPartitions
  const roster = yield* readRoster
  const indexes = Array.from({ length: partitions }, (_, index) => index)
  return {
    present: presentIn(roster),
    unowned: indexes.filter((partition) => !roster.leases.has(partition))
  }
})

/** Pause before the roster is read again after a failure, ms. */
const pollMs = 1_000

/**
 * Keeps the roster of workers and leases current until the scope closes.
 *
 * @param isSound true while this worker's own heartbeats are stored.
 */
export const watchRoster = Effect.fnUntraced(function* (
  bucket: string,
  ttl: number,
  isSound: () => boolean
) {
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
      const silence = Effect.repeat(Effect.sleep(ttl / beatsPerTtl), {
        until: () => isSound() && timers.monotonicMs() - heardAt > ttl
      })
      yield* Effect.raceFirst(follow, Effect.raceFirst(Deferred.await(again), silence))
    })
  )
  yield* Effect.forkScoped(keepGoing("listen to the other workers", readOnce, pollMs))
  return { changes, roster: () => roster, isComplete: () => complete }
})
