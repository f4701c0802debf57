import { Effect, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { endOf, scanQueue } from "../../broker/scan.ts"
import { readWaitingSpace } from "../../broker/storage-limits.ts"
import { deliverySubject } from "../../domain/delivery.ts"
import { TenantSpace } from "./stream-space.ts"

/**
 * Share of what queues may take for what waits there: retries, and what has ended and waits for
 * space in DEAD. The rest is for what is on its way, so that nothing that an endpoint or a tenant
 * does fills the queues (`routing/queue-brake.ts`).
 */
const forWaiting = 1 / 2
/** Approximate size of a message besides its body, bytes. */
const headerBytes = 800
/** Interval at which the limits of streams are read, ms: `petrel init` may change them. */
const readEveryMs = 10_000
/**
 * Share of a partition's part of the space. Where its queue holds more when it is taken over, the
 * schedules of former owners are counted.
 */
const countedFrom = 1 / 4

/** What waits in a queue of which this worker is the owner, bytes. */
interface OwnedQueue {
  /** Messages by sequence. */
  readonly waiting: Map<number, { readonly key: string; readonly bytes: number }>
  /** What will come into the queue, by endpoint key: schedules, and direct deliveries that failed. */
  readonly coming: Map<string, number>
}

/**
 * The space for what waits in queues, one for each worker: its part of what all workers may let wait
 * there. An endpoint that is beyond its share gets no first attempts: what comes for it waits in its
 * backlog until some of its retries have left.
 *
 * The broker counts messages by subject, but does not tell retries from what is on its way, and the
 * subjects of schedules name no endpoint. So the owner of a partition counts what waits.
 */
export class QueueSpace {
  readonly #space = new TenantSpace()
  readonly #queues = new Map<number, OwnedQueue>()
  readonly #partitions: number
  /** What all workers may let wait, bytes; undefined for no limit. */
  #maxBytes: number | undefined

  /** Makes the space, and reads its limit at intervals until the scope closes. */
  static readonly make = Effect.fnUntraced(function* (partitions: number) {
    const space = new QueueSpace(partitions)
    yield* Effect.ignore(space.#read)
    const look = Effect.delay(Effect.ignore(space.#read), readEveryMs)
    yield* Effect.forkScoped(keepGoing("read what queues may take", look, readEveryMs))
    return space
  })

  private constructor(partitions: number) {
    this.#partitions = partitions
  }

  /** True where an endpoint may let nothing more wait in a queue: it gets no first attempts. */
  isFull(key: string): boolean {
    return this.#space.isFull(key)
  }

  /**
   * True where nothing more of an endpoint that has ended may wait for space in DEAD. It may take
   * half of what retries may, so that a full DEAD holds no endpoint up.
   */
  isFullForEnded(key: string): boolean {
    return this.#space.isFull(key, 0.5)
  }

  /** Counts what waits in a partition's queue until the scope closes. */
  readonly own = Effect.fnUntraced({ self: this }, function* (partition: number) {
    const queue: OwnedQueue = { waiting: new Map(), coming: new Map() }
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        this.#queues.set(partition, queue)
        this.#resize()
      }),
      () => Effect.sync(() => this.#disown(partition, queue))
    )
    yield* Effect.forkScoped(Effect.ignore(this.#countFormer(partition)))
  })

  /** Called when a message of a queue waits for a retry. May be repeated. */
  waits(partition: number, seq: number, key: string, bodyBytes: number): void {
    const queue = this.#queues.get(partition)
    if (queue === undefined || queue.waiting.has(seq)) return
    const bytes = bodyBytes + headerBytes
    queue.waiting.set(seq, { key, bytes })
    this.#space.stored(key, bytes)
  }

  /** Called when a message has left a queue. */
  left(partition: number, seq: number): void {
    const waiting = this.#queues.get(partition)?.waiting
    const found = waiting?.get(seq)
    if (waiting === undefined || found === undefined) return
    waiting.delete(seq)
    this.#space.stored(found.key, -found.bytes)
  }

  /** Called when a schedule was stored, or a direct delivery failed: it comes into the queue. */
  willCome(partition: number, key: string, bodyBytes: number): void {
    const coming = this.#queues.get(partition)?.coming
    if (coming === undefined) return
    const bytes = bodyBytes + headerBytes
    coming.set(key, (coming.get(key) ?? 0) + bytes)
    this.#space.stored(key, bytes)
  }

  /** Called when a message has come into the queue whose delivery was attempted before. */
  came(partition: number, key: string, bodyBytes: number): void {
    const coming = this.#queues.get(partition)?.coming
    const before = coming?.get(key)
    if (coming === undefined || before === undefined) return
    // What a former owner stored may not have been counted.
    const bytes = Math.min(before, bodyBytes + headerBytes)
    if (before > bytes) coming.set(key, before - bytes)
    else coming.delete(key)
    this.#space.stored(key, -bytes)
  }

  #disown(partition: number, { coming, waiting }: OwnedQueue): void {
    this.#queues.delete(partition)
    for (const { bytes, key } of waiting.values()) this.#space.stored(key, -bytes)
    for (const [key, bytes] of coming) this.#space.stored(key, -bytes)
    this.#resize()
  }

  get #read() {
    return Effect.map(readWaitingSpace, ({ queues }) => {
      this.#maxBytes = queues === undefined ? undefined : queues * forWaiting
      this.#resize()
    })
  }

  #resize(): void {
    const part = this.#queues.size / this.#partitions
    this.#space.resize(this.#maxBytes === undefined ? undefined : this.#maxBytes * part)
  }

  /** Counts the schedules that former owners have stored, where there may be many. */
  readonly #countFormer = Effect.fnUntraced({ self: this }, function* (partition: number) {
    const { names, streamInfo } = yield* Broker
    const stream = names.deliveries(partition)
    const end = yield* endOf(stream)
    const { state } = yield* streamInfo(`look how much waits in ${stream}`, stream)
    const part = (this.#maxBytes ?? Number.POSITIVE_INFINITY) / this.#partitions
    if (state.bytes < part * countedFrom) return
    yield* scanQueue(stream, names.subjects.schedulesOf(partition), 1, end).pipe(
      Stream.runForEach((message) =>
        Effect.sync(() => {
          const key = deliverySubject(message).split(".").slice(-2).join(".")
          this.willCome(partition, key, message.data.length)
        })
      )
    )
  })
}
