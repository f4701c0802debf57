import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/connection.ts"
import { readLayout } from "../broker/installed.ts"
import { readStream } from "../broker/scan.ts"

/** What a worker does: route events, deliver them, or both. */
export const Role = Schema.Literals(["router", "deliver"])
export type Role = typeof Role.Type

/** What a worker's sign of life says. */
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
  /** It is about to stop, and hands over what it has. */
  leaving: Schema.optionalKey(Schema.Boolean),
  /** It was not heard for a while, and may take nothing yet. */
  returning: Schema.optionalKey(Schema.Boolean),
  /** Of each partition in which it delivers: deliveries in flight, and all that are in memory. */
  partitions: Schema.Array(
    Schema.Struct({ partition: Schema.Int, inFlight: Schema.Int, inMemory: Schema.Int })
  )
})
export type Heartbeat = typeof Heartbeat.Type

/** Who owns a partition. */
export const Lease = Schema.Struct({ worker: Schema.String, instance: Schema.String })
export type Lease = typeof Lease.Type

export const decodeHeartbeat = Schema.decodeUnknownOption(Schema.fromJsonString(Heartbeat))
export const decodeLease = Schema.decodeUnknownOption(Schema.fromJsonString(Lease))

/** Keys in the bucket of workers. */
export const memberKey = (id: string): string => `worker.${id}`
export const leaseKey = (partition: number): string => `owner.${partition}`

/** The subjects of all heartbeats and leases in a bucket. */
export const rosterSubjects = (bucket: string): ReadonlyArray<string> => [
  `$KV.${bucket}.worker.*`,
  `$KV.${bucket}.owner.*`
]

/** Something that was heard, and when, by a monotonic clock, ms. */
interface Heard<A> {
  readonly said: A
  readonly at: number
}

/** Who is there and who owns what, as far as the bucket of workers has told. */
export class Roster {
  readonly members = new Map<string, Heard<Heartbeat>>()
  readonly leases = new Map<number, Heard<Lease>>()

  /**
   * Takes in what a message of the bucket says; one without a body says that the value has ended.
   *
   * @returns true where somebody came or went, or something changed hands.
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
  /** None where it gives no sign of life any more, though its leases last. */
  readonly heartbeat: Heartbeat | undefined
  readonly partitions: ReadonlyArray<number>
}

/** Who is there now, and who owns what. */
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

/** Who is there, in the order of their ids. */
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

/** Who is there now, and which partitions nobody owns. */
export const readPresent = Effect.gen(function* () {
  const { partitions } = yield* readLayout
  const roster = yield* readRoster
  const indexes = Array.from({ length: partitions }, (_, index) => index)
  return {
    present: presentIn(roster),
    unowned: indexes.filter((partition) => !roster.leases.has(partition))
  }
})
