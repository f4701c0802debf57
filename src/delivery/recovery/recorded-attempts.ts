import type { Place } from "../../domain/fact.ts"
import { slotOf } from "../../domain/fact.ts"

/** A message of a stream: a truncated stream reuses the sequence, but not the time. */
type MessageIdentity = Pick<Place, "at" | "entry" | "seq">

/** An attempt at a message, and when the message was stored, ms since the epoch. */
export interface RecordedAttempt {
  readonly at: number
  readonly attempt: number
}

/** The last attempt in the history for each message of a stream. */
export class RecordedAttempts {
  readonly #last: Map<number, RecordedAttempt>

  /** @param last by slot. (Default: none) */
  constructor(last: ReadonlyMap<number, RecordedAttempt> = new Map()) {
    this.#last = new Map(last)
  }

  /** The last attempts, by slot. */
  get last(): ReadonlyMap<number, RecordedAttempt> {
    return this.#last
  }

  add(place: MessageIdentity, attempt: number): void {
    this.#last.set(slotOf(place), { at: place.at, attempt })
  }

  /** True where the last attempt in the history for a message has this number. */
  has(place: MessageIdentity, attempt: number): boolean {
    const last = this.#last.get(slotOf(place))
    return last?.at === place.at && last.attempt === attempt
  }
}
