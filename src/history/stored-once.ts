import type { PubAck } from "../broker/publisher.ts"
import { PublishError } from "../broker/publisher.ts"
import type { Fact } from "../domain/fact.ts"

/** Appends without a known result that are remembered. */
const maxUnsure = 10_000

/**
 * Finds out which appends have stored a fact that was not there, so that each fact is counted by
 * the worker that stored it, and once: not where a former owner stored it, but also where the
 * acknowledgement was lost and a second try met the first.
 */
export class StoredOnce {
  readonly #stored: (fact: Fact) => void
  /** Ids of appends whose acknowledgement did not arrive. */
  readonly #unsure = new Set<string>()

  /** @param stored called with each fact that an append here has stored. */
  constructor(stored: (fact: Fact) => void) {
    this.#stored = stored
  }

  /** Notes the result of a try to append a fact. */
  answered(fact: Fact, id: string, result: PubAck | PublishError): void {
    if (result instanceof PublishError) {
      if (result.reason !== "rejected") this.#remember(id)
      return
    }
    const wasUnsure = this.#unsure.size > 0 && this.#unsure.delete(id)
    if (!result.duplicate || (wasUnsure && isOwn(fact))) this.#stored(fact)
  }

  #remember(id: string): void {
    this.#unsure.add(id)
    if (this.#unsure.size <= maxUnsure) return
    const [oldest] = this.#unsure
    if (oldest !== undefined) this.#unsure.delete(oldest)
  }
}

/**
 * True where no other process uses the fact's id. An outcome with a plan has the plan's id, under
 * which another router's plan may be stored: who appends it looks there.
 */
const isOwn = ({ kind, plan }: Fact): boolean => plan === undefined || kind === "routed"
