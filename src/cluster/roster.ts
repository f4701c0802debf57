import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readLayout } from "../broker/installed.ts"
import { readStream } from "../broker/scan.ts"

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
    Schema.Array(Schema.Struct({ partition: Schema.Int, owner: Schema.String }))
  ),
  /** True if the worker was missed for a while and may not take partitions yet. */
  returning: Schema.optionalKey(Schema.Boolean),
  /**
   * Deliveries in flight and in memory, for each partition in which it delivers: not while it takes
   * one over, or finishes what is in flight to hand it on.
   */
  partitions: Schema.Array(
    Schema.Struct({ partition: Schema.Int, inFlight: Schema.Int, inMemory: Schema.Int })
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
export const rosterSubjects = (bucket: string): ReadonlyArray<string> => [
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
   * Applies a message of the bucket; one without a body means that the value has ended.
   *
   * @returns true if a worker joined or left or changed its state, or a lease changed hands.
   */
  hear(subject: string, text: string, at: number): boolean {
    const [kind, name = ""] = subject.split(".").slice(-2)
    return kind === "worker" ? this.#hearMember(name, text, at) : this.#hearLease(name, text, at)
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

/** Reads the roster once. */
export const readRoster = Effect.gen(function* () {
  const { names } = yield* Broker
  const bucket = names.buckets.workers
  const roster = new Roster()
  yield* readStream({ stream: `KV_${bucket}`, subjects: rosterSubjects(bucket) }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => roster.hear(message.subject, message.string(), 0))
    )
  )
  return roster
})

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
  const { partitions } = yield* readLayout
  const roster = yield* readRoster
  const indexes = Array.from({ length: partitions }, (_, index) => index)
  return {
    present: presentIn(roster),
    unowned: indexes.filter((partition) => !roster.leases.has(partition))
  }
})
