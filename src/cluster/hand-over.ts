import { Effect, FiberSet, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { timers } from "../time/timers.ts"
import { askInParts } from "./exchange.ts"
import type { Heartbeat } from "./roster.ts"

/*
 * A partition moves between two live workers when the new one asks for it. The owner goes on until
 * then, finishes what is in flight, releases its lease, and says what it remembers of the partition.
 * So the new owner need not read the history for it: at a thousand deliveries a second that would
 * take seconds, in which the partition stands still.
 */

/** How long the owner may take for its first part, and for each further one, ms. */
const timeouts = { first: 3_000, next: 10_000 }
/** Interval at which an owner says that requests are still in flight, ms. */
const partEveryMs = 1_000
/** Maximum length of a memory in one part of an answer, bytes. It is a third longer as text. */
const maxPartBytes = 192 * 1024
/** Length of the longest memory that is handed over, bytes: some 3,000,000 deliveries. */
const maxMemoryBytes = 64 * 1024 * 1024

/** Asks the owner of a partition for it. */
const HandOverRequest = Schema.Struct({
  v: Schema.Literal(1),
  partition: Schema.Int,
  /** Who asks. */
  worker: Schema.String
})
export type HandOverRequest = typeof HandOverRequest.Type

/** A part of the owner's answer. The last one says that the partition is released, or refuses. */
const HandOverPart = Schema.Struct({
  v: Schema.Literal(1),
  part: Schema.Int,
  isLast: Schema.Boolean,
  /** A piece of the memory, base64. */
  memory: Schema.optionalKey(Schema.String),
  /** In the last part: the revision of the lease's key that the release left. */
  released: Schema.optionalKey(Schema.Int)
})
type HandOverPart = typeof HandOverPart.Type

/** A partition that its owner has released for the worker that asked. */
export interface HandedOver {
  /** The revision of the lease's key that the release left. */
  readonly released: number
  /** What the owner remembered; undefined where the history has to be read. */
  readonly memory: Uint8Array | undefined
}

const decodeRequest = Schema.decodeUnknownOption(Schema.fromJsonString(HandOverRequest))
const decodePart = Schema.decodeUnknownOption(Schema.fromJsonString(HandOverPart))

/**
 * Asks a worker process for a partition, and waits until it has released it. Says so where it does
 * not, or does not answer.
 *
 * @param instance of the process.
 */
export const askForPartition = Effect.fnUntraced(function* (
  instance: string,
  partition: number,
  worker: string
) {
  const { names } = yield* Broker
  const request: HandOverRequest = { v: 1, partition, worker }
  const parts = yield* askInParts(
    names.subjects.handOver(instance),
    request,
    (text) => Option.getOrUndefined(decodePart(text)),
    timeouts
  )
  if (parts === undefined) return "unanswered"
  const released = parts.at(-1)?.released
  if (released === undefined) return "refused"
  const pieces = parts.flatMap(({ memory }) => memory ?? [])
  const memory =
    pieces.length === 0
      ? undefined
      : Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64")))
  return { released, memory } satisfies HandedOver
})

/**
 * Answers other workers that ask this process for partitions, until the scope closes.
 *
 * @param handOver begins to hand a partition over, and returns what waits until it is released;
 *   undefined where the one who asks is not to have it now.
 */
export const answerHandOvers = Effect.fnUntraced(function* (
  instance: string,
  handOver: (request: HandOverRequest) => Effect.Effect<HandedOver | undefined> | undefined
) {
  const { largestMessage, listen, names, say } = yield* Broker
  const run = yield* FiberSet.makeRuntime<never>()

  const answer = (to: string) => {
    let part = 0
    return (rest: Pick<HandOverPart, "isLast" | "memory" | "released">) =>
      say(to, JSON.stringify({ v: 1, part: part++, ...rest } satisfies HandOverPart))
  }
  const sayMemory = (send: ReturnType<typeof answer>, memory: Uint8Array): void => {
    const length = Math.min(maxPartBytes, Math.floor(largestMessage() / 2))
    for (let from = 0; from < memory.length; from += length) {
      const piece = Buffer.from(memory.buffer, memory.byteOffset + from)
      const end = Math.min(length, memory.length - from)
      send({ isLast: false, memory: piece.toString("base64", 0, end) })
    }
  }
  const receive = (text: string, to: string | undefined): void => {
    const request = Option.getOrUndefined(decodeRequest(text))
    if (request === undefined || to === undefined) return
    const send = answer(to)
    const work = handOver(request)
    send({ isLast: work === undefined })
    if (work === undefined) return
    const beat = timers.every(partEveryMs, () => send({ isLast: false }))
    run(
      Effect.map(work, (handed) => {
        timers.cancel(beat)
        const memory = handed?.memory
        if (memory !== undefined && memory.length <= maxMemoryBytes) sayMemory(send, memory)
        send({ isLast: true, ...(handed === undefined ? {} : { released: handed.released }) })
      }).pipe(Effect.ensuring(Effect.sync(() => timers.cancel(beat))))
    )
  }
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      listen(names.subjects.handOver(instance), (message) =>
        receive(message.string(), message.reply)
      )
    ),
    (unlisten) => Effect.sync(unlisten)
  )
})

/** A worker that died does not answer either, and its leases last for a TTL. */
const afterTtls = 2

interface Withheld {
  readonly owner: string
  /** When its owner was first asked in vain, ms of the monotonic clock. */
  readonly since: number
  isSaid: boolean
}

/**
 * The partitions whose live owners do not answer when they are asked for them: their version does not
 * know how, or the user of one side may not use the subjects.
 */
export class WithheldPartitions {
  readonly #afterMs: number
  readonly #all = new Map<number, Withheld>()

  /** @param ttl of a lease, ms. */
  constructor(ttl: number) {
    this.#afterMs = afterTtls * ttl
  }

  /** Notes that an owner did not answer. Returns true once, when that has lasted. */
  unanswered(partition: number, owner: string): boolean {
    const before = this.#all.get(partition)
    if (before?.owner !== owner) {
      this.#all.set(partition, { owner, since: timers.monotonicMs(), isSaid: false })
      return false
    }
    if (before.isSaid || !this.#lasts(before)) return false
    before.isSaid = true
    return true
  }

  /** Keeps those alone that are missing still. */
  keep(missing: ReadonlyArray<number>): void {
    for (const partition of this.#all.keys())
      if (!missing.includes(partition)) this.#all.delete(partition)
  }

  answered(partition: number): void {
    this.#all.delete(partition)
  }

  /** Returns those that have been withheld for a while. */
  readonly list = (): NonNullable<Heartbeat["withheld"]> =>
    [...this.#all]
      .filter(([, withheld]) => this.#lasts(withheld))
      .map(([partition, { owner }]) => ({ partition, owner }))

  #lasts({ since }: Withheld): boolean {
    return timers.monotonicMs() - since >= this.#afterMs
  }
}
