import type { Place } from "../../domain/fact.ts"

/** A message of a stream: a truncated stream reuses the sequence, but not the time. */
type MessageIdentity = Pick<Place, "seq" | "at">

/** The last attempt in the history for each message of a stream. */
export class RecordedAttempts {
  readonly #last = new Map<number, { readonly at: number; readonly attempt: number }>()

  add({ at, seq }: MessageIdentity, attempt: number): void {
    this.#last.set(seq, { at, attempt })
  }

  /** True where the last attempt in the history for a message has this number. */
  has({ at, seq }: MessageIdentity, attempt: number): boolean {
    const last = this.#last.get(seq)
    return last?.at === at && last.attempt === attempt
  }
}
