import { Effect, Queue } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { endpointKeyIn, tenantOfKey } from "../../domain/endpoint.ts"
import type { SharedSpace } from "../../policy/storage-quotas.ts"
import { estimateBytes, isCrowded, isOverQuota } from "../../policy/storage-quotas.ts"

interface TenantUse {
  bytes: number
  /** By endpoint key. */
  readonly endpoints: Map<string, number>
}

/** What a reading of the streams found, bytes. */
interface SpaceReading extends SharedSpace {
  /** By endpoint key; empty unless more than a quarter of the space is taken. */
  readonly byEndpoint: ReadonlyMap<string, number>
}

const partOf = ({ bytes, maxBytes }: SharedSpace, part: number): SharedSpace => ({
  bytes,
  maxBytes: maxBytes === undefined ? undefined : maxBytes * part
})

/** True where shares of half of the space count, so that readings have to count by endpoint. */
export const isCounted = (space: SharedSpace): boolean => isCrowded(partOf(space, 1 / 2))

/**
 * What endpoints take of the space that tenants share: as the last reading found it, and what was
 * stored since. Answers in constant time.
 */
export class TenantSpace {
  #bytes = 0
  #maxBytes: number | undefined
  #tenants = new Map<string, TenantUse>()

  /** True where shares count. */
  get isCrowded(): boolean {
    return isCrowded({ bytes: this.#bytes, maxBytes: this.#maxBytes })
  }

  /** True where readings have to count by endpoint. */
  get isCounted(): boolean {
    return isCounted({ bytes: this.#bytes, maxBytes: this.#maxBytes })
  }

  /** Starts again from a reading. */
  read({ byEndpoint, bytes, maxBytes }: SpaceReading): void {
    this.#bytes = bytes
    this.#maxBytes = maxBytes
    this.#tenants = new Map()
    for (const [key, bytes] of byEndpoint) this.#add(key, bytes)
  }

  /** Changes what there is. */
  resize(maxBytes: number | undefined): void {
    this.#maxBytes = maxBytes
  }

  /** Counts what was stored for an endpoint since the last reading, or has left (negative), bytes. */
  stored(key: string, bytes: number): void {
    this.#bytes = Math.max(0, this.#bytes + bytes)
    this.#add(key, bytes)
  }

  /**
   * True where an endpoint may take no more.
   *
   * @param part of the space, for what may take less of it: a half at least. (Default: all)
   * @param isOnlyTenant true where there is no other tenant. (Default: false)
   */
  isFull(key: string, part: 0.5 | 1 = 1, isOnlyTenant = false): boolean {
    const space = partOf({ bytes: this.#bytes, maxBytes: this.#maxBytes }, part)
    if (!isCrowded(space)) return false
    const tenant = this.#tenants.get(tenantOfKey(key))
    const endpointBytes = tenant?.endpoints.get(key)
    const newEndpoint = endpointBytes === undefined ? 1 : 0
    return isOverQuota(space, {
      endpointBytes: endpointBytes ?? 0,
      tenantBytes: tenant?.bytes ?? 0,
      endpoints: (tenant?.endpoints.size ?? 0) + newEndpoint,
      tenants: this.#tenants.size + (tenant === undefined ? 1 : 0),
      isOnlyTenant
    })
  }

  #add(key: string, bytes: number): void {
    const tenant = tenantOfKey(key)
    const use = this.#tenants.get(tenant) ?? { bytes: 0, endpoints: new Map() }
    this.#tenants.set(tenant, use)
    use.bytes = Math.max(0, use.bytes + bytes)
    const left = Math.max(0, (use.endpoints.get(key) ?? 0) + bytes)
    // Who takes nothing any more does not count as one who shares.
    if (left > 0) use.endpoints.set(key, left)
    else use.endpoints.delete(key)
    if (use.endpoints.size === 0) this.#tenants.delete(tenant)
  }
}

/** Interval at which sizes are read, ms: `crowded` while shares count. */
const readEveryMs = { crowded: 1_000, calm: 5_000 }
/** Streams that are read at the same time: each answer may name all endpoints. */
const readAtOnce = 4
/** Weight of the last stored message in an endpoint's usual size. */
const sizeWeight = 1 / 16

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
    Object.entries(state.subjects ?? {}).map(([subject, count]) => [endpointKeyIn(subject), count])
  )
  return { bytes: state.bytes, messages: state.messages, counts }
})

/** The streams of the space, one for each partition. */
interface StreamSpaceOptions {
  /** What it holds, for the log: `queues`. */
  readonly what: string
  readonly partitions: number
  /** Returns what all of them may take together, bytes; undefined for no limit. */
  readonly maxBytes: Effect.Effect<number | undefined, BrokerError, Broker>
  readonly streamOf: (partition: number) => string
  /** Subjects of a partition that name tenant and endpoint. */
  readonly subjectsOf: (partition: number) => string
}

/**
 * Space that streams of all partitions share, one for each worker, read at intervals. While it is
 * crowded, a tenant has an equal share of it, and an endpoint a part of its tenant's.
 *
 * The broker tells the size of a stream, and counts messages by subject. The sizes of an endpoint's
 * messages are known as far as this worker stored them (`stored`), and else taken for average.
 */
export class StreamSpace {
  readonly #space = new TenantSpace()
  readonly #readings: Queue.Queue<void>
  readonly #options: StreamSpaceOptions
  readonly #partitions: ReadonlyArray<number>
  /** Usual size of a message by endpoint key, bytes; of those that have some. */
  #sizes = new Map<string, number>()

  /** Makes the space, and reads the sizes at intervals until the scope closes. */
  static readonly make = Effect.fnUntraced(function* (options: StreamSpaceOptions) {
    const space = new StreamSpace(options, yield* Queue.sliding<void>(1))
    yield* Effect.ignore(space.#read)
    const look = Effect.andThen(space.#untilNextReading, Effect.ignore(space.#read))
    const what = `read the size of ${options.what}`
    yield* Effect.forkScoped(keepGoing(what, look, readEveryMs.calm))
    return space
  })

  private constructor(options: StreamSpaceOptions, readings: Queue.Queue<void>) {
    this.#options = options
    this.#partitions = Array.from({ length: options.partitions }, (_, index) => index)
    this.#readings = readings
  }

  /** True where an endpoint may take no more; see `TenantSpace.isFull`. */
  isFull(key: string, part: 0.5 | 1, isOnlyTenant: boolean): boolean {
    return this.#space.isFull(key, part, isOnlyTenant)
  }

  /** Counts a message that was stored for an endpoint, bytes with its headers. */
  stored(key: string, bytes: number): void {
    const before = this.#sizes.get(key)
    this.#sizes.set(key, before === undefined ? bytes : before + (bytes - before) * sizeWeight)
    const wasCounted = this.#space.isCounted
    this.#space.stored(key, bytes)
    // Shares may count from now on: who holds what is counted at once.
    if (!wasCounted && this.#space.isCounted) Queue.offerUnsafe(this.#readings, undefined)
  }

  get #untilNextReading() {
    return Effect.suspend(() =>
      Effect.raceFirst(
        Queue.take(this.#readings),
        Effect.sleep(this.#space.isCounted ? readEveryMs.crowded : readEveryMs.calm)
      )
    )
  }

  readonly #read = Effect.gen({ self: this }, function* () {
    const { streamOf, subjectsOf } = this.#options
    const maxBytes = yield* this.#options.maxBytes
    const sizes = yield* this.#each((partition) => readSize(streamOf(partition)))
    const bytes = sum(sizes)
    if (!isCounted({ bytes, maxBytes }))
      return this.#space.read({ bytes, maxBytes, byEndpoint: new Map() })
    const counted = yield* this.#each((partition) =>
      countStream(streamOf(partition), subjectsOf(partition))
    )
    const byEndpoint = new Map<string, number>()
    for (const stream of counted)
      for (const [key, bytes] of estimateBytes(stream, (key) => this.#sizes.get(key)))
        byEndpoint.set(key, (byEndpoint.get(key) ?? 0) + bytes)
    this.#sizes = new Map([...this.#sizes].filter(([key]) => byEndpoint.has(key)))
    this.#space.read({ bytes: sum(counted.map(({ bytes }) => bytes)), maxBytes, byEndpoint })
  })

  #each<A, E, R>(read: (partition: number) => Effect.Effect<A, E, R>) {
    return Effect.forEach(this.#partitions, read, { concurrency: readAtOnce })
  }
}

const sum = (sizes: ReadonlyArray<number>) => sizes.reduce((all, bytes) => all + bytes, 0)
