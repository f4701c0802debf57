import { Effect, Queue } from "effect"
import { Broker } from "../../broker/broker.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { waitingRooms } from "../../broker/storage-limits.ts"
import { estimateBytes, isCrowded } from "../../policy/backlog-quota.ts"
import { TenantRoom } from "./tenant-room.ts"

/** Interval at which sizes are read, ms: `crowded` while shares count. */
const readEveryMs = { crowded: 1_000, calm: 5_000 }
/** Streams that are read at the same time: each answer may name all endpoints. */
const readAtOnce = 4
/** Weight of the last stored message in an endpoint's usual size. */
const sizeWeight = 1 / 16

/** Returns the endpoint key in the subject of a backlog or a queue. */
const keyIn = (subject: string): string => subject.split(".").slice(-2).join(".")

/** Reads what queues and backlogs may take, from the limits of the other streams. */
export const readWaitingRooms = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const bound = (name: string) =>
    Effect.map(streamInfo(`look at stream ${name}`, name), ({ config }) => config.max_bytes)
  const [eventBytes, historyBytes, deadBytes] = yield* Effect.all(
    [bound(names.events), bound(names.history), bound(names.dead)],
    { concurrency: 3 }
  )
  return waitingRooms({ eventBytes, historyBytes, deadBytes })
})

/** Reads the size of a stream, without what its subjects hold. */
const readSize = Effect.fnUntraced(function* (stream: string) {
  const { streamInfo } = yield* Broker
  const { state } = yield* streamInfo(`look how much waits in ${stream}`, stream)
  return state.bytes
})

/** Reads the size of a stream, and counts its messages by endpoint key. */
const countStream = Effect.fnUntraced(function* (stream: string, subjects_filter: string) {
  const { streamInfo } = yield* Broker
  const { state } = yield* streamInfo(`count what waits in ${stream}`, stream, { subjects_filter })
  const counts = new Map(
    Object.entries(state.subjects ?? {}).map(([subject, count]) => [keyIn(subject), count])
  )
  return { bytes: state.bytes, messages: state.messages, counts }
})

/**
 * The room of all backlogs, one for each worker. While it is crowded, a tenant has an equal share of
 * it, and an endpoint a part of its tenant's: what is beyond ends as `backlog-full`.
 *
 * The broker tells the size of a stream, and counts messages by subject. The sizes of an endpoint's
 * messages are known as far as this worker stored them (`stored`), and else taken for average.
 */
export class BacklogRoom {
  readonly #room = new TenantRoom()
  readonly #readings: Queue.Queue<void>
  readonly #partitions: ReadonlyArray<number>
  /** Usual size of a message by endpoint key, bytes; of those that have some. */
  #sizes = new Map<string, number>()

  /** Makes the room, and reads the sizes at intervals until the scope closes. */
  static readonly make = Effect.fnUntraced(function* (partitions: number) {
    const room = new BacklogRoom(partitions, yield* Queue.sliding<void>(1))
    yield* Effect.ignore(room.#read)
    const look = Effect.andThen(room.#untilNextReading, Effect.ignore(room.#read))
    yield* Effect.forkScoped(keepGoing("read the size of backlogs", look, readEveryMs.calm))
    return room
  })

  private constructor(partitions: number, readings: Queue.Queue<void>) {
    this.#partitions = Array.from({ length: partitions }, (_, index) => index)
    this.#readings = readings
  }

  /** True where an endpoint's backlog may take no more. */
  isFull(key: string): boolean {
    return this.#room.isFull(key)
  }

  /** Counts a message that was stored in an endpoint's backlog, bytes with its headers. */
  stored(key: string, bytes: number): void {
    const before = this.#sizes.get(key)
    this.#sizes.set(key, before === undefined ? bytes : before + (bytes - before) * sizeWeight)
    const wasCrowded = this.#room.isCrowded
    this.#room.stored(key, bytes)
    // Shares count from now on: who holds what is counted at once.
    if (!wasCrowded && this.#room.isCrowded) Queue.offerUnsafe(this.#readings, undefined)
  }

  get #untilNextReading() {
    return Effect.suspend(() =>
      Effect.raceFirst(
        Queue.take(this.#readings),
        Effect.sleep(this.#room.isCrowded ? readEveryMs.crowded : readEveryMs.calm)
      )
    )
  }

  readonly #read = Effect.gen({ self: this }, function* () {
    const { names } = yield* Broker
    const maxBytes = (yield* readWaitingRooms).backlogs
    const concurrency = { concurrency: readAtOnce }
    const each = <A, E, R>(read: (partition: number) => Effect.Effect<A, E, R>) =>
      Effect.forEach(this.#partitions, read, concurrency)
    const sum = (sizes: ReadonlyArray<number>) => sizes.reduce((all, bytes) => all + bytes, 0)
    const sizes = yield* each((partition) => readSize(names.backlog(partition)))
    if (!isCrowded({ bytes: sum(sizes), maxBytes }))
      return this.#room.read({ bytes: sum(sizes), maxBytes, byEndpoint: new Map() })
    const counted = yield* each((partition) =>
      countStream(names.backlog(partition), names.subjects.backlogOf(partition))
    )
    const byEndpoint = new Map<string, number>()
    for (const stream of counted)
      for (const [key, bytes] of estimateBytes(stream, (key) => this.#sizes.get(key)))
        byEndpoint.set(key, (byEndpoint.get(key) ?? 0) + bytes)
    this.#sizes = new Map([...this.#sizes].filter(([key]) => byEndpoint.has(key)))
    this.#room.read({ bytes: sum(counted.map(({ bytes }) => bytes)), maxBytes, byEndpoint })
  })
}
