import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { InFlightWork } from "../../broker/in-flight.ts"
import type { PubAck } from "../../broker/publication.ts"
import type { OwnerFence } from "../../cluster/ownership.ts"
import type { Fact } from "../../domain/fact.ts"
import type { Facts, FactToStore } from "../../history/facts.ts"
import type { CompletedDeliveries } from "../recovery/completed-deliveries.ts"

/** A success as the history holds it. */
export interface StoredSuccess {
  readonly fact: Fact
  readonly seq: number
}

/** What is to be stored of a success. */
export interface SuccessRecord extends FactToStore {
  /** Stores it where a single append did not or may not. (Default: {@link SuccessLog.append}) */
  readonly fallback?: () => Effect.Effect<StoredSuccess, never, Broker>
  /** True where `fallback` is the only way. */
  readonly isFallbackOnly?: boolean
}

/** A delivery whose success is being recorded. */
interface Succeeding extends InFlightWork<Broker> {
  /** Called once the history holds the fact. Returns what remains to be done. */
  recorded(fact: Fact): Effect.Effect<void>
}

/** Returns a success as it is recorded by who does not own its partition any more. */
const asLate = ({ fact: { plan: _, ...known }, id }: FactToStore): FactToStore => ({
  fact: { ...known, kind: "delivered-late" },
  id: `${id}.late`
})

/** Appends the successes of one partition to the history. */
export class SuccessLog {
  readonly #facts: Facts["Service"]
  readonly #fence: Pick<OwnerFence, "holds" | "stillOwner">
  readonly #completed: CompletedDeliveries

  constructor(
    facts: Facts["Service"],
    fence: Pick<OwnerFence, "holds" | "stillOwner">,
    completed: CompletedDeliveries
  ) {
    this.#facts = facts
    this.#fence = fence
    this.#completed = completed
  }

  /**
   * Appends a success however long it takes: `delivered` if this worker owns the partition when the
   * fact is stored, `delivered-late` if another has taken it over. Each try checks ownership again,
   * since the append may wait for the broker for minutes. A late one has an id of its own: an earlier
   * try may be stored without an answer, after the next owner's dead letter.
   */
  readonly append = Effect.fnUntraced({ self: this }, function* (fact: Fact, id: string) {
    const onTime = { fact, id }
    let last = onTime
    const make = Effect.map(this.#fence.stillOwner, (isOwner) => {
      last = isOwner ? onTime : asLate(onTime)
      return last
    })
    const { seq } = yield* this.#facts.appendAnew(make)
    return last === onTime ? yield* this.confirm(onTime, seq) : { fact: last.fact, seq }
  })

  /**
   * Called with an on-time success that is stored. A stalled connection may have carried it to the
   * broker after another owner had begun. The history must not hold it beside that owner's dead
   * letter: then it is recorded as late, too.
   */
  confirm(success: SuccessRecord, seq: number): Effect.Effect<StoredSuccess, never, Broker> {
    return Effect.flatMap(this.#fence.stillOwner, (isOwner) =>
      isOwner ? Effect.succeed({ fact: success.fact, seq }) : this.#appendLate(success)
    )
  }

  #appendLate(success: SuccessRecord): Effect.Effect<StoredSuccess> {
    const { fact, id } = asLate(success)
    return Effect.map(this.#facts.append(fact, id), ({ seq }) => ({ fact, seq }))
  }

  /**
   * Appends a success with a single publish and no fiber; only where that fails, in a fiber. The
   * history watermark stays below the fact until it is stored and the delivery released.
   */
  record(work: Succeeding, success: SuccessRecord): void {
    const mark = this.#completed.open()
    if (success.isFallbackOnly === true || !this.#fence.holds())
      work.step(() => this.#recordInFiber(work, success, mark))
    else
      this.#facts.tryAppend(success.fact, success.id, (stored) => {
        const isNew = stored !== undefined && (success.fallback === undefined || !stored.duplicate)
        // The fact may be stored already, so the mark stays open while it is appended again.
        if (!isNew) return work.step(() => this.#recordInFiber(work, success, mark))
        if (!this.#fence.holds()) {
          const fallback = () => this.confirm(success, stored.seq)
          return work.step(() => this.#recordInFiber(work, { ...success, fallback }, mark))
        }
        work.step(() => this.#release(work, success.fact, stored))
        this.#completed.close(mark)
      })
  }

  #release(work: Succeeding, fact: Fact, { seq }: PubAck): void {
    this.#completed.stored(seq)
    const release = work.recorded(fact)
    if (release === Effect.void) work.done()
    else work.continueInFiber(release)
  }

  #recordInFiber(
    work: Succeeding,
    { fact, id, fallback = () => this.append(fact, id) }: SuccessRecord,
    mark: ReturnType<CompletedDeliveries["open"]>
  ): void {
    const whole = Effect.flatMap(fallback(), ({ fact, seq }) => {
      this.#completed.stored(seq)
      return work.recorded(fact)
    })
    work.continueInFiber(
      Effect.ensuring(
        whole,
        Effect.sync(() => this.#completed.close(mark))
      )
    )
  }
}
