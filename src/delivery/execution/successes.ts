import { Effect, Option, Schedule } from "effect"
import type { Broker } from "../../broker/connection.ts"
import type { InFlightWork } from "../../broker/in-flight.ts"
import type { OwnerFence } from "../../cluster/owner-fence.ts"
import type { Fact } from "../../domain/fact.ts"
import { readFact } from "../../history/fact-at.ts"
import { Facts } from "../../history/facts.ts"
import type { CompletedDeliveries } from "../recovery/completed-deliveries.ts"

/** A success as the history holds it. */
export interface StoredSuccess {
  readonly fact: Fact
  readonly seq: number
}

/** The fact of a success, and what follows once it is stored. */
export interface Success extends Pick<StoredSuccess, "fact"> {
  readonly id: string
  /** Appends the fact where the fast path did not. (Default: `append`) */
  readonly again?: () => Effect.Effect<StoredSuccess, never, Broker>
  /** Called once the history holds the fact. */
  readonly stored: (fact: Fact, seq: number) => Effect.Effect<void>
}

/** Appends the success facts of one partition. */
export interface Successes {
  /**
   * Appends a success however long it takes: `delivered` if this worker owns the partition when the
   * fact is stored, `delivered-late` if another has taken it over. Each try checks ownership again,
   * since the append may wait for the broker for minutes.
   */
  readonly append: (fact: Fact, id: string) => Effect.Effect<StoredSuccess, never, Broker>
  /**
   * Does the same without a fiber on the fast path. The history watermark stays below the fact
   * until it is stored.
   */
  readonly appendPlainly: (work: InFlightWork<Broker>, success: Success) => void
}

/** Reads a fact that the history is known to hold, however long it takes. */
export const readSurely = (seq: number) =>
  readFact(seq).pipe(Effect.retry(Schedule.spaced("1 second")), Effect.orDie)

const isOnTime = ({ kind }: Fact): boolean => kind === "delivered"

/** Makes what appends the successes of a partition. */
export const makeSuccesses = Effect.fnUntraced(function* (
  { holds, stillOwner }: Pick<OwnerFence, "holds" | "stillOwner">,
  settled: CompletedDeliveries
) {
  const facts = yield* Facts

  const append = Effect.fnUntraced(function* (fact: Fact, id: string) {
    let last = fact
    const make = Effect.map(stillOwner, (isOwner) => {
      last = isOwner ? fact : { ...fact, kind: "delivered-late" }
      return last
    })
    const { duplicate, seq } = yield* facts.appendAnew(make, id)
    if (isOnTime(last) || !duplicate) return { fact: last, seq }
    const there = yield* readSurely(seq)
    if (!Option.exists(there, isOnTime)) return { fact: last, seq }
    // A stalled connection may have carried the first try to the broker after another owner had
    // begun. The history must not hold an on-time success beside that owner's dead letter.
    const late = yield* facts.append(last, `${id}.late`)
    return { fact: last, seq: late.seq }
  })

  const appendPlainly: Successes["appendPlainly"] = (work, { again, fact, id, stored: follow }) => {
    const mark = settled.open()
    const close = () => settled.close(mark)
    const settle = (stored?: { readonly seq: number; readonly duplicate: boolean }) => {
      const isNew = stored !== undefined && (again === undefined || !stored.duplicate)
      work.step(() => {
        // The fact may be stored already, so the mark stays open while it is appended again.
        if (!isNew) {
          const appended = again === undefined ? append(fact, id) : again()
          const whole = Effect.flatMap(appended, ({ fact, seq }) => follow(fact, seq))
          return work.continueInFiber(Effect.ensuring(whole, Effect.sync(close)))
        }
        const rest = follow(fact, stored.seq)
        if (rest === Effect.void) work.done()
        else work.continueInFiber(rest)
      })
      if (isNew) close()
    }
    if (holds()) facts.tryAppend(fact, id, settle)
    else settle()
  }

  const successes: Successes = { append, appendPlainly }
  return successes
})
