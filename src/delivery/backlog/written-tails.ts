import { OrderedMap } from "../../broker/ordered-map.ts"
import type { DeliveryReference } from "../../domain/backlog-message.ts"
import { timers } from "../../time/timers.ts"

/**
 * Messages with this many references are left as they are. To write them again would cost more than
 * it saves: at 64, a message's own 250 bytes are 4 bytes for each reference.
 */
const smallReferences = 64
/** How long the references of a message are held, ms: what comes later is a message of its own. */
const heldMs = 60_000
/** Maximum endpoints whose last message is held: 63 references of some 200 bytes each, 12 MB. */
const maxTails = 1_000

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

/** A message of references that is the last of its subject. */
export interface WrittenTail extends Replaced {
  readonly references: ReadonlyArray<DeliveryReference>
  readonly packed: PackedReferences
  /** True where it is all that its subject holds. */
  readonly isSole: boolean
}

/** The last messages of endpoints' backlogs, as long as they may be written again with more. */
export class WrittenTails {
  readonly #tails = new OrderedMap<string, { readonly tail: WrittenTail; readonly until: number }>()

  get(key: string): WrittenTail | undefined {
    const held = this.#tails.get(key)
    if (held === undefined) return undefined
    if (held.until > timers.monotonicMs()) return held.tail
    this.#tails.delete(key)
    return undefined
  }

  /** Holds what was written last for an endpoint, where more may be written with it. */
  hold(key: string, tail: WrittenTail): void {
    this.#tails.delete(key)
    if (tail.references.length >= smallReferences) return
    this.#tails.set(key, { tail, until: timers.monotonicMs() + heldMs })
    if (this.#tails.size > maxTails) this.#tails.takeOldest()
  }

  drop(key: string): void {
    this.#tails.delete(key)
  }
}
