import type { RoundIdentity } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import type { RetryRecord } from "../../domain/retry-record.ts"

/**
 * The last attempt in the history for each message of a stream. A truncated stream reuses
 * sequences, perhaps for a later round of the same event, so the delivery and its round are
 * compared as well.
 */
export class RecordedAttempts {
  readonly #last = new Map<number, { readonly of: string; readonly attempt: number }>()

  add(seq: number, of: RoundIdentity, attempt: number): void {
    this.#last.set(seq, { of: roundKey(of), attempt })
  }

  /** True where the history holds the attempt that a retry record is about. */
  has(seq: number, record: RoundIdentity & Pick<RetryRecord, "progress">): boolean {
    const last = this.#last.get(seq)
    return last?.of === roundKey(record) && last.attempt === record.progress.attempts
  }
}
