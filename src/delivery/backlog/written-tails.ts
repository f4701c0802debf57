import { OrderedMap } from "../../broker/ordered-map.ts"
import { timers } from "../../time/timers.ts"

/**
 * Messages with this many references are left as they are. To write them again would cost more than
 * it saves: at 64, a message's own 250 bytes are 4 bytes for each reference.
 */
const smallReferences = 64
/**
 * So many small messages are written again as one: what that costs is shared by so many. Each
 * endpoint has another number than the one before, so that endpoints that get the same events do so
 * at different times.
 */
const foldedTogether = { least: 4, most: 11 }
/** How long the references of a message are held, ms: what comes later is a message of its own. */
const heldMs = 60_000
/**
 * Maximum memory for held messages of a partition, bytes: those of some 3,000 endpoints that all get
 * the same events. If more endpoints take turns, each is dropped before its next message is written,
 * and nothing is written again as one.
 */
const maxHeldBytes = 4 * 1024 * 1024
/** Memory of a held message besides its packed references, bytes, about. */
const messageBytes = 250

/** The header that holds the references of a message. */
export type PackedReferences = readonly [name: string, packed: string]

/** A message of references whose entries a later one holds again. */
export interface Replaced {
  readonly seq: number
  /**
   * The same as the message has it: tells it from another message of a truncated stream. Undefined
   * where a former owner replaced it.
   */
  readonly packed?: PackedReferences
}

/** One of the last messages of its subject, of references. */
export interface WrittenTail extends Replaced {
  readonly packed: PackedReferences
  /** Number of its references. */
  readonly count: number
  /** The window that its references have in common, ms. */
  readonly window: number
  /** True where its subject holds nothing before it that it does not hold as well. */
  readonly isFirst: boolean
}

interface HeldTails {
  /** They follow each other: nothing lies between them. */
  readonly tails: ReadonlyArray<WrittenTail>
  /** How many are written again as one. */
  readonly together: number
  readonly until: number
  readonly bytes: number
}

const bytesOf = (tails: ReadonlyArray<WrittenTail>): number =>
  tails.reduce((sum, { packed }) => sum + messageBytes + packed[1].length, 0)

/** The last messages of endpoints' backlogs, as long as they may be written again as one. */
export class WrittenTails {
  readonly #tails = new OrderedMap<string, HeldTails>()
  #bytes = 0
  /** How often an endpoint was held of which nothing was. */
  #begun = 0

  get(key: string): ReadonlyArray<WrittenTail> {
    return this.#held(key)?.tails ?? []
  }

  /** True where there are so many, or they hold so much, that one message is to take their place. */
  isFoldDue(key: string): boolean {
    const { tails = [], together = 0 } = this.#held(key) ?? {}
    const held = tails.reduce((sum, { count }) => sum + count, 0)
    return tails.length > 0 && (tails.length >= together || held >= smallReferences)
  }

  #held(key: string): HeldTails | undefined {
    const held = this.#tails.get(key)
    if (held === undefined || held.until > timers.monotonicMs()) return held
    this.drop(key)
    return undefined
  }

  /**
   * Holds what was written last for an endpoint, where it is small, with those before it that are to
   * be written again with it. Those that were due and were not written again have been read.
   *
   * @param after the message that it was written after.
   * @param isOfWindow true where its entries may be in one message with those of others.
   */
  wrote(
    key: string,
    tail: WrittenTail,
    after: number,
    isOfWindow: (others: ReadonlyArray<WrittenTail>) => boolean
  ): void {
    const { least, most } = foldedTogether
    const before = this.get(key)
    const isOneMore = before.at(-1)?.seq === after && !this.isFoldDue(key) && isOfWindow(before)
    const together = this.#held(key)?.together ?? least + (this.#begun++ % (most - least + 1))
    this.drop(key)
    if (tail.count >= smallReferences) return
    const until = timers.monotonicMs() + heldMs
    const tails = isOneMore ? [...before, tail] : [tail]
    const bytes = bytesOf(tails)
    this.#tails.set(key, { tails, together, until, bytes })
    this.#bytes += bytes
    while (this.#bytes > maxHeldBytes) this.drop(this.#tails.oldestKey ?? key)
  }

  drop(key: string): void {
    this.#bytes -= this.#tails.get(key)?.bytes ?? 0
    this.#tails.delete(key)
  }
}
