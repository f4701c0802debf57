import type { RetryRecord } from "./retry-record.ts"
import type { Identity } from "./settled.ts"

/**
 * Of the messages of a stream, the last attempt that the history tells of. A stream that lost its
 * tail in a crash gives the same sequence to another message, perhaps of a later round of the same
 * event: so the delivery and its round are compared as well.
 */
export class Told {
  readonly #last = new Map<number, Identity & { readonly attempt: number }>()

  add(seq: number, { eventSeq, round }: Identity, attempt: number): void {
    this.#last.set(seq, { eventSeq, round, attempt })
  }

  /** True where the attempt that a message's record is about is told of. */
  has(
    seq: number,
    { eventSeq, progress, round }: Pick<RetryRecord, "eventSeq" | "progress" | "round">
  ): boolean {
    const last = this.#last.get(seq)
    return last?.eventSeq === eventSeq && last.round === round && last.attempt === progress.attempts
  }
}
