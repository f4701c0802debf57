import { Effect } from "effect"
import type { Broker } from "../broker/connection.ts"
import type { PubAck } from "../broker/publisher.ts"
import type { Fact } from "../domain/fact.ts"
import type { Facts } from "../history/facts.ts"
import type { Settled } from "./memory/settled.ts"
import type { Plain } from "./underway.ts"

/** A fact that ends a delivery, and what follows it. */
export interface EndFact {
  readonly fact: Fact
  readonly id: string
  /** How it is appended where it is not known to have been stored just now. (Default: again) */
  readonly again?: () => Effect.Effect<Pick<PubAck, "seq">, never, Broker>
  /** What is done once the history has it, at a sequence. */
  readonly stored: (fact: Fact, seq: number) => Effect.Effect<void>
}

/**
 * Appends the fact that ends a delivery, without a fiber for as long as all goes well. Until it has
 * come to its end the floor of the history stays below the fact.
 */
export const appendPlainly = (
  facts: Facts["Service"],
  settled: Settled,
  work: Plain<Broker>,
  { again, fact, id, stored: follow }: EndFact
) => {
  const mark = settled.open()
  const close = () => settled.close(mark)
  facts.tryAppend(fact, id, (stored) => {
    const isNew = stored !== undefined && (again === undefined || !stored.duplicate)
    work.step(() => {
      // Stored or not, it was begun when the mark was set.
      if (!isNew) {
        const append: Effect.Effect<Pick<PubAck, "seq">, never, Broker> = again === undefined
          ? facts.append(fact, id)
          : again()
        const whole = Effect.flatMap(append, ({ seq }) => follow(fact, seq))
        return work.goOn(Effect.ensuring(whole, Effect.sync(close)))
      }
      const rest = follow(fact, stored.seq)
      if (rest === Effect.void) work.done()
      else work.goOn(rest)
    })
    if (isNew) close()
  })
}
