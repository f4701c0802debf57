import type { RoundIdentity } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import type { RetryRecord } from "../retry/retry-record.ts"

/**
 * Of the messages of a stream, the last attempt that the history tells of. A stream that lost its
 * tail in a crash gives the same sequence to another message, perhaps of a later round of the same
 * event: so the delivery and its round are compared as well.
 */
export class RecordedAttempts {
  readonly #last = new Map<number, { readonly of: string; readonly attempt: number }>()

  add(seq: number, of: RoundIdentity, attempt: number): void {
    this.#last.set(seq, { of: roundKey(of), attempt })
  }

  /** True where the attempt that a message's record is about is told of. */
  has(seq: number, record: RoundIdentity & Pick<RetryRecord, "progress">): boolean {
    const last = this.#last.get(seq)
    return last?.of === roundKey(record) && last.attempt === record.progress.attempts
  }
}
