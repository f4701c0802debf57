import type { Delivery } from "../../domain/delivery.ts"
import type { Linked } from "../lanes/chain.ts"
import { Chain } from "../lanes/chain.ts"

/** The clocks of a cluster's nodes differ by less than this, or what is repeated is sent again, ms. */
const clocksApart = 1_000
/** Generations kept besides the present one. */
const kept = 2

/** Small numbers take no memory of their own, times since the epoch do. (2026-01-01) */
const start = 1_767_225_600_000

type Identity = Pick<Delivery, "tenant" | "endpoint" | "eventSeq">

/** One that is attempted. */
interface Attempted extends Linked<Attempted> {
  readonly delivery: Identity
}

const keyOf = ({ endpoint, tenant }: Identity): string => `${tenant}.${endpoint}`

/**
 * What a partition's owner remembers of first rounds that it attempts from their events, or has ended
 * so: where the broker hands such an event to another router, that may put the same into the queue.
 */
export class Straights {
  readonly #underway = new Chain<Attempted>()
  /** By endpoint and event: when the event was stored at the latest, ms since {@link start}. */
  readonly #ended: Array<Map<string, Map<number, number>>> = [new Map()]

  /** It is attempted from now on, until it is left. */
  begin(delivery: Identity): Attempted {
    const attempted: Attempted = { delivery, before: undefined, after: undefined }
    this.#underway.add(attempted)
    return attempted
  }

  leave(attempted: Attempted): void {
    this.#underway.remove(attempted)
  }

  /** Whether it is attempted at the moment. */
  isUnderway({ endpoint, eventSeq, tenant }: Identity): boolean {
    for (const { delivery } of this.#underway)
      if (
        delivery.eventSeq === eventSeq &&
        delivery.endpoint === endpoint &&
        delivery.tenant === tenant
      )
        return true
    return false
  }

  /** @param at when its event was stored, or something later of which only it can be the reason. */
  add(delivery: Identity, at: number): void {
    const [present] = this.#ended
    const key = keyOf(delivery)
    const events = present?.get(key) ?? new Map<number, number>()
    events.set(delivery.eventSeq, Math.floor(at) - start)
    present?.set(key, events)
  }

  /** Whether it has ended. A stream that lost its end gives the sequences of events to later ones. */
  hasEnded(delivery: Identity & Pick<Delivery, "began">): boolean {
    const key = keyOf(delivery)
    return this.#ended.some((generation) => {
      const at = generation.get(key)?.get(delivery.eventSeq)
      return at !== undefined && delivery.began - start <= at + clocksApart
    })
  }

  /** Forgets the oldest generation of what has ended. */
  rotate(): void {
    this.#ended.unshift(new Map())
    if (this.#ended.length > kept + 1) this.#ended.pop()
  }
}
