import { deserialize, serialize } from "node:v8"
import { Option, Schema } from "effect"
import { Progress } from "../../domain/delivery.ts"
import type { HistoryPosition } from "./completed-deliveries.ts"
import { CompletedDeliveries } from "./completed-deliveries.ts"
import { DirectDeliveryRegistry } from "./direct-delivery-registry.ts"
import type { PartitionMemory, RecordedAttempt, StreamMemory } from "./partition-memory.ts"
import { RecordedAttempts } from "./partition-memory.ts"

/*
 * What an owner remembers of a partition, as bytes for the next owner. It is what that one would
 * find in the history above the watermark, which takes a hundred times as long to read. It keeps its
 * generations: each is forgotten when its former owner would have forgotten it, or later.
 */

const Numbers = Schema.instanceOf(Float64Array)
const Generations = Schema.Array(Schema.Struct({ seqs: Numbers, times: Numbers }))
const Attempts = Schema.Struct({ seqs: Numbers, times: Numbers, attempts: Numbers })
const Stream = Schema.Struct({ completed: Generations, recordedAttempts: Attempts })

const Handed = Schema.Struct({
  v: Schema.Literal(1),
  queue: Stream,
  backlog: Stream,
  direct: Schema.Struct({
    done: Schema.Array(
      Schema.Struct({
        endpoints: Schema.Array(Schema.String),
        owners: Schema.instanceOf(Uint32Array),
        seqs: Numbers,
        times: Numbers
      })
    ),
    failed: Schema.Array(Schema.ReadonlyMap(Schema.String, Progress))
  })
})
type Handed = typeof Handed.Type

const decode = Schema.decodeUnknownOption(Schema.toType(Handed))

const packGenerations = ({ completed }: StreamMemory): Handed["queue"]["completed"] =>
  completed.generations.map((generation) => ({
    seqs: Float64Array.from(generation.keys()),
    times: Float64Array.from(generation.values())
  }))

/** The attempts in the history: those found there, and those recorded since. */
const attemptsOf = ({ recordedAttempts, waiting }: StreamMemory) => {
  const last = new Map(recordedAttempts.last)
  for (const [seq, { isOutcomeRecorded, record, storedAt }] of waiting)
    if (isOutcomeRecorded) last.set(seq, { at: storedAt, attempt: record.progress.attempts })
  return last
}

const packAttempts = (last: ReadonlyMap<number, RecordedAttempt>) => {
  const all = [...last.values()]
  return {
    seqs: Float64Array.from(last.keys()),
    times: Float64Array.from(all, ({ at }) => at),
    attempts: Float64Array.from(all, ({ attempt }) => attempt)
  }
}

const packStream = (memory: StreamMemory): Handed["queue"] => ({
  completed: packGenerations(memory),
  recordedAttempts: packAttempts(attemptsOf(memory))
})

/** Returns what the next owner of a partition must know, as bytes. */
export const packMemory = (memory: PartitionMemory): Uint8Array => {
  const handed: Handed = {
    v: 1,
    queue: packStream(memory),
    backlog: packStream(memory.backlog),
    direct: memory.directDeliveries.packed
  }
  return serialize(handed)
}

/** What the memory of one stream holds of what was handed over. */
type Restored = Pick<StreamMemory, "completed" | "recordedAttempts">

/** What was handed over of a partition. */
interface RestoredMemory extends Restored {
  readonly directDeliveries: DirectDeliveryRegistry
  readonly backlog: Restored
}

const generationsOf = ({ completed }: Handed["queue"]) =>
  completed.map(({ seqs, times }) => {
    const generation = new Map<number, number>()
    for (const [index, seq] of seqs.entries()) generation.set(seq, times[index] ?? 0)
    return generation
  })

const restoreAttempts = ({ recordedAttempts }: Handed["queue"]) => {
  const { attempts, seqs, times } = recordedAttempts
  const last = new Map<number, RecordedAttempt>()
  for (const [index, seq] of seqs.entries())
    last.set(seq, { at: times[index] ?? 0, attempt: attempts[index] ?? 0 })
  return new RecordedAttempts(last)
}

const parse = (bytes: Uint8Array): unknown => {
  try {
    return deserialize(bytes)
  } catch {
    return undefined
  }
}

/** Returns what `packMemory` has packed; undefined where this version cannot read it. */
export const unpackMemory = (
  bytes: Uint8Array,
  historyPosition: HistoryPosition
): RestoredMemory | undefined => {
  const handed = Option.getOrUndefined(decode(parse(bytes)))
  if (handed === undefined) return undefined
  const { backlog, direct, queue } = handed
  const completed = new CompletedDeliveries(historyPosition, generationsOf(queue))
  return {
    completed,
    recordedAttempts: restoreAttempts(queue),
    directDeliveries: new DirectDeliveryRegistry(direct),
    backlog: {
      completed: completed.forBacklog(generationsOf(backlog)),
      recordedAttempts: restoreAttempts(backlog)
    }
  }
}

interface FinalMemoryOptions {
  readonly memory: PartitionMemory
  /** True while no move to a backlog has an unknown outcome. */
  readonly areMovesKnown: () => boolean
  /** True while it is unknown whether a stream was truncated. */
  readonly isDoubtful: () => boolean
}

/**
 * What an owner remembers at its end, if that is all that the next owner must know. It is not where
 * the history may hold a fact that this owner does not know to be stored: its work was cut off.
 */
export class FinalMemory {
  readonly #options: FinalMemoryOptions
  /** How many facts were begun when all was settled; undefined if that was not so. */
  #settledAt: number | undefined

  constructor(options: FinalMemoryOptions) {
    this.#options = options
  }

  /** How many facts were begun in the queue and in the backlog. */
  get #begun(): number {
    const { memory } = this.#options
    return memory.completed.opened + memory.backlog.completed.opened
  }

  /** Notes whether all is settled. Called once nothing is in flight and nothing may begin. */
  note(): void {
    const { areMovesKnown, memory } = this.#options
    const isSettled = memory.completed.isIdle && memory.directDeliveries.isIdle && areMovesKnown()
    this.#settledAt = isSettled ? this.#begun : undefined
  }

  /**
   * Returns it as bytes; undefined where the next owner has to read the history. Called once the
   * partition's scope is closed: what began a fact since was cut off.
   */
  get packed(): Uint8Array | undefined {
    const { isDoubtful, memory } = this.#options
    return this.#settledAt === this.#begun && !isDoubtful() ? packMemory(memory) : undefined
  }
}
