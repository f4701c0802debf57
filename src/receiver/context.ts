import type { Alerts } from "./alerts.ts"
import type { Answer, Answered } from "./answers.ts"
import type { NewEntry } from "./entry.ts"
import type { Rate } from "./load.ts"
import type { LogLine } from "./log.ts"
import type { CompiledSource, Step } from "./settings.ts"
import type { Store } from "./store.ts"
import type { Tally } from "./tally.ts"
import type { Works } from "./works.ts"

/** What the parts of a receiver share. */
export interface Context<Tx> {
  readonly store: Store<Tx>
  readonly sources: ReadonlyMap<string, CompiledSource>
  readonly works: Works<Tx>
  readonly tally: Tally
  readonly alerts: Alerts
  readonly settings: { readonly maxInFlight: number; readonly storeWithinMs: number }
  readonly log: (line: LogLine) => void
  readonly failpoint: (step: Step) => void
  readonly rateOf: (source: string) => Rate | undefined
  /** Counts an answer and returns it. */
  readonly answered: (source: CompiledSource, answered: Answered) => Answer
  /** Tells of an event that now waits for a person. */
  readonly kept: (
    entry: NewEntry,
    state: "dead" | "quarantined",
    reason: unknown,
    attempts: number
  ) => void
  /** Tells the loop that there may be something to work on. */
  readonly wake: () => void
}
