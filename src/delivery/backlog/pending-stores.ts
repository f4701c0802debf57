import { Effect } from "effect"
import { OrderedMap } from "../../broker/ordered-map.ts"
import type { PublishError } from "../../broker/publication.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { roundKey } from "../../domain/delivery.ts"
import { placeName } from "../../domain/fact.ts"
import type { Resume, Stored, StoreRequest } from "./backlog-write.ts"
import { PendingStore, storedBefore, waitingName } from "./backlog-write.ts"

/**
 * Outcomes that are kept for callers that gave up before they were known, oldest dropped first. Who
 * asks after that is answered by `hasLeft`.
 */
const maxOutcomes = 10_000

/**
 * The stores of a partition that are under way, and the outcomes of which no caller knows yet: a
 * repeated store joins the earlier one.
 */
export class PendingStores {
  /** By `PendingStore.name`. */
  readonly #pending = new OrderedMap<string, PendingStore>()
  readonly #outcomes = new OrderedMap<string, Stored>()
  readonly #asReference: (delivery: Delivery) => boolean

  constructor(asReference: (delivery: Delivery) => boolean) {
    this.#asReference = asReference
  }

  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#outcomes.size === 0
  }

  /** Returns where a delivery is stored, where that is known already, and forgets it. */
  outcomeOf(key: string, request: StoreRequest): Stored | undefined {
    const name = nameOf(key, request)
    const known = this.#outcomes.get(name) ?? (request.hasLeft() ? storedBefore : undefined)
    if (known !== undefined) this.#outcomes.delete(name)
    return known
  }

  /**
   * Returns the store of a place, and lets a caller wait for it.
   *
   * @param begun called with one that is new.
   */
  join(
    key: string,
    request: StoreRequest,
    resume: Resume,
    begun: (pending: PendingStore) => void
  ): PendingStore {
    const name = nameOf(key, request)
    const known = this.#pending.get(name)
    const pending = known ?? new PendingStore(name, request, this.#asReference)
    pending.callers.add(resume)
    if (known === undefined) {
      this.#pending.set(name, pending)
      begun(pending)
    }
    return pending
  }

  /** Tells what is known of an own store of a delivery that was read at another place of its backlog. */
  standing(key: string, delivery: Delivery): "stored" | "storing" | undefined {
    // It may have been attempted since.
    const names = [roundKey(delivery), `${roundKey(delivery)} ${delivery.origin}`]
    if (names.some((name) => this.#pending.has(`${key} ${name}`))) return "storing"
    return names.some((name) => this.#outcomes.get(`${key} ${name}`)) ? "stored" : undefined
  }

  /** Returns those of some stores that have not ended. */
  open(some: ReadonlyArray<PendingStore>): ReadonlyArray<PendingStore> {
    return some.filter((one) => this.#pending.get(one.name) === one)
  }

  /** Drops a store that is certainly not stored. */
  drop(pending: PendingStore): void {
    this.#pending.delete(pending.name)
  }

  /** Fails a store that is certainly not stored. */
  fail(pending: PendingStore, error: PublishError): void {
    this.drop(pending)
    for (const resume of pending.callers) resume(Effect.fail(error))
  }

  end(pending: PendingStore, stored: Stored): void {
    this.drop(pending)
    for (const resume of pending.callers) resume(Effect.succeed(stored))
    if (pending.callers.size > 0) return
    this.#outcomes.set(pending.name, stored)
    if (this.#outcomes.size > maxOutcomes) this.#outcomes.takeOldest()
  }
}

const nameOf = (key: string, { delivery, place, progress }: StoreRequest): string =>
  `${key} ${waitingName({ ...delivery, progress, origin: placeName(place) })}`
