import type { Entry, EntryState, NewEntry } from "./entry.ts"

/** What a receipt was, after it was stored. */
export interface Stored {
  readonly isNew: boolean
  /** How often the event has been received, this time included. */
  readonly receipts: number
}

export type OnceOutcome =
  | { readonly outcome: "done" | "stale" }
  | { readonly outcome: "duplicate"; readonly receipts: number }
  /** Another request works on the same event now. */
  | { readonly outcome: "busy"; readonly retryAfterMs: number }

export interface Selection {
  readonly state?: EntryState | undefined
  readonly source?: string | undefined
  /** Only entries that are older than the one with this id. */
  readonly before?: string | undefined
  /** (Default: 50) */
  readonly limit?: number | undefined
}

/** How long the work of `once` may take: the signal is aborted after `withinMs`. */
export interface OnceLimits {
  readonly signal: AbortSignal
  readonly withinMs: number
}

/** What ended or waits, in a window of time. Durations in ms. */
export interface StoredCounts {
  readonly byState: Readonly<Record<EntryState, number>>
  /** Receipts beyond the first of each event. */
  readonly repeats: number
  /** Repeats that had another body than the first receipt. */
  readonly conflicts: number
  /** Events by the number of attempts that they took, of those that have ended. */
  readonly attempts: Readonly<Record<number, number>>
  /** From receipt to the commit of the work: percentiles of what is done. Undefined where nothing is. */
  readonly timeToDone: Percentiles | undefined
  /** From receipt to the beginning of the first attempt. */
  readonly queueDelay: Percentiles | undefined
}

export interface Percentiles {
  readonly p50: number
  readonly p95: number
}

/** What waits now, of one source. */
export interface Waiting {
  readonly source: string
  readonly received: number
  readonly dead: number
  readonly quarantined: number
  /** How long the oldest event waits that is neither done nor dead, in ms; 0 where none does. */
  readonly oldestWaitsMs: number
}

/** How a failed attempt goes on. */
export type Failure =
  | {
      readonly kind: "retry"
      readonly delayMs: number
      readonly error: string
      /** Whether the attempt does not count: its work has not begun, or was told to stop. */
      readonly isFree?: boolean
    }
  | { readonly kind: "dead" | "quarantined"; readonly error: string }

/** How the work of an entry ended. `lost`: another process has it, or a person has decided. */
export type WorkOutcome = "done" | "stale" | "lost"

/** The part of a store that keeps events with their bodies, for `process`, and for what failed. */
export interface Queue<Tx> {
  /** How many entries one process can work on at the same time, where that is fewer than it may be told to. */
  readonly atOnce?: number
  /** Stores entries, all or none. What is there already gets one receipt more. */
  readonly put: (entries: ReadonlyArray<NewEntry>) => Promise<ReadonlyArray<Stored>>
  /** Stores an entry in a state that waits for a person. */
  readonly keep: (entry: NewEntry, state: "dead" | "quarantined", error: string) => Promise<Stored>
  /**
   * Takes at most `limit` entries of the sources whose time has come, and of each subject only the oldest that is open. Counts the
   * attempt before the work: work that kills its process is counted.
   *
   * @param leaseMs after which another claim may take an entry whose process has died.
   */
  readonly claim: (
    sources: ReadonlyArray<string>,
    limit: number,
    leaseMs: number
  ) => Promise<ReadonlyArray<Entry>>
  /** Runs the work and marks the entry done in one transaction, unless another process has it. */
  readonly work: (
    entry: Entry,
    run: (tx: Tx) => Promise<void>,
    signal: AbortSignal
  ) => Promise<WorkOutcome>
  /** Records a failed attempt. False if another process has the entry, or its work is done after all. */
  readonly fail: (entry: Entry, failure: Failure) => Promise<boolean>
  /** Stores the events that an unreadable request turned out to carry, and marks it done. */
  readonly replace: (entry: Entry, entries: ReadonlyArray<NewEntry>) => Promise<WorkOutcome>
  /** Lists entries without their bodies, the youngest first. */
  readonly list: (selection: Selection) => Promise<ReadonlyArray<Entry>>
  readonly show: (id: string) => Promise<Entry | undefined>
  /** Lets a dead or quarantined entry be worked on again. False if it is neither. */
  readonly retry: (id: string) => Promise<boolean>
  /** Gives up a dead or quarantined entry. False if it is neither. */
  readonly resolve: (id: string, by: string) => Promise<boolean>
  /** @param sinceMs only what was received in the last so many ms. */
  readonly counts: (source: string | undefined, sinceMs: number) => Promise<StoredCounts>
  /** Counts what waits, by source. Cheap, however much is done. */
  readonly waiting: () => Promise<ReadonlyArray<Waiting>>
}

/**
 * Where an inbox remembers what it has taken. `Tx` is what the work is given: the user's own client, in the
 * transaction that marks the event done.
 */
export interface Store<Tx> {
  readonly name: string
  /** Whether the work and its mark are one transaction. */
  readonly guarantee: "exactly-once" | "at-least-once"
  /**
   * Runs work of an event that is not known yet, and marks the event done with it.
   *
   * @throws what the work throws, after which the event is not known; the signal's reason when it is aborted.
   */
  readonly once: (
    entry: NewEntry,
    run: (tx: Tx) => Promise<void>,
    limits: OnceLimits
  ) => Promise<OnceOutcome>
  /** Undefined for a store that only remembers keys. */
  readonly queue: Queue<Tx> | undefined
  /** Returns which of the keys are known. */
  readonly known: (source: string, keys: ReadonlyArray<string>) => Promise<ReadonlySet<string>>
  /** Forgets at most so many keys that the sender repeats no more. Returns how many it forgot. */
  readonly prune: (limit: number) => Promise<number>
  /** Makes or changes the tables. */
  readonly migrate: () => Promise<void>
}

/** Thrown where a store does not answer in time, is not there, or refuses for now. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable"
}
