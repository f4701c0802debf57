import type { Percentiles, Queue, StoredCounts } from "./store.ts"
import type { Tally } from "./tally.ts"

/** Figures of what came in a window of time. Shares are from 0 to 1, durations in ms. */
export interface ReceiverStats {
  /** Events that were received for the first time. */
  readonly events: number
  readonly byState: StoredCounts["byState"]
  /** Of the events that have ended: those whose work is done. Undefined where none has ended. */
  readonly successRate: number | undefined
  /** Of the events that have ended: those that took more than one attempt. */
  readonly retryRate: number | undefined
  /** Of all receipts: those of events that were known. */
  readonly duplicateRate: number | undefined
  /** Of the events that have ended: those that are dead. */
  readonly permanentRate: number | undefined
  /** Repeats that had another body than the first receipt. */
  readonly conflicts: number
  /** From receipt to the commit of the work. */
  readonly timeToDone: Percentiles | undefined
  /** From receipt to the beginning of the first attempt. */
  readonly queueDelay: Percentiles | undefined
  /** Events that have ended, by the number of attempts that they took. */
  readonly attempts: Readonly<Record<number, number>>
  /** How long the oldest event waits for its work. Undefined where none does. */
  readonly oldestWaitsMs: number | undefined
  /** Answers of this process since its start, by status. */
  readonly answers: Readonly<Record<number, number>>
  /** Of those: not 2xx. */
  readonly non2xxRate: number | undefined
}

const oldestOf = async <Tx>(
  queue: Queue<Tx>,
  source: string | undefined
): Promise<number | undefined> => {
  const waiting = (await queue.waiting()).filter(
    (one) => one.received > 0 && (source === undefined || one.source === source)
  )
  return waiting.length === 0
    ? undefined
    : Math.max(...waiting.map(({ oldestWaitsMs }) => oldestWaitsMs))
}

const share = (part: number, whole: number): number | undefined =>
  whole === 0 ? undefined : part / whole

export const statsOf = async <Tx>(
  queue: Queue<Tx>,
  tally: Tally,
  source: string | undefined,
  sinceMs: number
): Promise<ReceiverStats> => {
  const counts = await queue.counts(source, sinceMs)
  const { attempts, byState } = counts
  const events = Object.values(byState).reduce((sum, count) => sum + count, 0)
  const done = byState.done + byState.stale
  const ended = done + byState.dead + byState.discarded
  const retried = Object.entries(attempts)
    .filter(([taken]) => Number(taken) > 1)
    .reduce((sum, [, count]) => sum + count, 0)
  const answers: Record<number, number> = {}
  for (const [name, { statuses }] of tally)
    if (source === undefined || name === source)
      for (const [status, count] of statuses) answers[status] = (answers[status] ?? 0) + count
  const answered = Object.values(answers).reduce((sum, count) => sum + count, 0)
  const non2xx = Object.entries(answers)
    .filter(([status]) => !status.startsWith("2"))
    .reduce((sum, [, count]) => sum + count, 0)
  return {
    events,
    byState,
    successRate: share(done, ended),
    retryRate: share(retried, ended),
    duplicateRate: share(counts.repeats, events + counts.repeats),
    permanentRate: share(byState.dead + byState.discarded, ended),
    conflicts: counts.conflicts,
    timeToDone: counts.timeToDone,
    queueDelay: counts.queueDelay,
    attempts,
    oldestWaitsMs: await oldestOf(queue, source),
    answers,
    non2xxRate: share(non2xx, answered)
  }
}
