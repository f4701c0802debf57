import { Schema } from "effect"
import type { Restart } from "../../domain/names.ts"

/**
 * What a stream copied from a source differs from what the source has: the source lost its end,
 * which was copied before, and gives the sequences again. The broker resumes a source by sequence
 * alone, so messages that take those sequences are never copied.
 */
export const Divergence = Schema.Struct({
  /** The stream that copies. */
  target: Schema.String,
  source: Schema.String,
  /** Number of restarts of the source until now. */
  restarts: Schema.Int,
  /** Where the source must start again. */
  start: Schema.Int,
  /** The first and the last copied sequence whose message is lost. */
  from: Schema.Int,
  to: Schema.Int,
  /** The last sequence that was copied. */
  copied: Schema.Int
})
export type Divergence = typeof Divergence.Type

/** Says what is wrong, in one clause. */
export const divergenceText = ({ from, source, target, to }: Divergence): string =>
  from === to
    ? `the broker lost message ${from} of ${source} after ${target} had copied it, and whatever takes its sequence is not copied`
    : `the broker lost messages ${from} to ${to} of ${source} after ${target} had copied them, and whatever takes their sequences is not copied`

/** Returns the restart that remedies a divergence. */
export const restartFor = ({ copied, restarts, start, to }: Divergence): Restart => ({
  number: restarts + 1,
  start,
  lostThrough: to,
  copiedThrough: Math.max(to, copied)
})

/** A copy, as its header names it, and whether the source has its message. */
export interface Verdict {
  readonly seq: number
  readonly restart: Restart | undefined
  /** Undefined where that cannot be known: age or somebody has removed the message. */
  readonly isSame: boolean | undefined
}

/**
 * Collects what became of the copies of one source, shown in the order in which they were made.
 * A restart makes earlier copies of what it brings irrelevant.
 */
export class CopyVerdicts {
  readonly #current: Restart | undefined
  #lost: { readonly from: number; readonly to: number } | undefined
  /** The last message that both streams have, below those that are lost. */
  #lastSame: number | undefined
  #copied = 0
  /** The highest number of a restart among the copies seen. */
  #restarts = 0

  /** @param current the last restart of the source. */
  constructor(current: Restart | undefined) {
    this.#current = current
  }

  /** True for a copy that need not be compared: the source was started again before it. */
  isSuperseded({ restart, seq }: Pick<Verdict, "restart" | "seq">): boolean {
    const { number = 0, start = 0 } = this.#current ?? {}
    return (restart?.number ?? 0) < number && seq >= start
  }

  /** True if something is lost, and no copy before it was seen whose message is there. */
  get isStartOpen(): boolean {
    return this.#lost !== undefined && this.#lastSame === undefined
  }

  see(verdict: Verdict): void {
    const { isSame, restart, seq } = verdict
    this.#copied = Math.max(this.#copied, seq)
    if (this.isSuperseded(verdict)) return
    if (restart !== undefined) this.#begin(restart)
    if (isSame === true && (this.#lost === undefined || seq < this.#lost.from))
      this.#lastSame = Math.max(this.#lastSame ?? 0, seq)
    if (isSame !== false) return
    const { from = seq, to = seq } = this.#lost ?? {}
    this.#lost = { from: Math.min(from, seq), to: Math.max(to, seq) }
  }

  /** Returns where the source must start again; undefined if nothing is lost. */
  result(): Pick<Divergence, "copied" | "from" | "start" | "to"> | undefined {
    if (this.#lost === undefined) return undefined
    const { from, to } = this.#lost
    // Nothing between the two was copied, so all that is there now is new.
    const start = this.#lastSame === undefined || this.#lastSame >= from ? from : this.#lastSame + 1
    return { start, from, to, copied: this.#copied }
  }

  /** The copies of a restart replace all earlier ones from where it started. */
  #begin({ number, start }: Restart): void {
    if (number <= this.#restarts) return
    this.#restarts = number
    if (this.#lost === undefined) return
    const { from, to } = this.#lost
    this.#lost = start > from ? { from, to: Math.min(to, start - 1) } : undefined
  }
}
