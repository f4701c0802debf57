import { Shares } from "../policy/shares.ts"

/** Maximum events that are held, of all tenants. */
const maxHeld = 2_048
/** Share of the bytes that one event counts as at most: the largest is held, too, once others have left. */
const largestShare = 1 / 8

/**
 * Events that one router holds beside its window, of one tenant no more than is left free. An event
 * that is held is not acknowledged: if this worker dies, another one gets it from the broker.
 */
export class HeldEvents {
  readonly #events = new Shares(maxHeld)
  readonly #bytes: Shares
  readonly #maxBytes: number

  /** @param maxBytes maximum bytes of bodies. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#bytes = new Shares(maxBytes)
  }

  get size(): number {
    return this.#events.total
  }

  /** Returns what lets go of the event; undefined where its tenant has as many as it may have. */
  hold(tenant: string, bytes: number): (() => void) | undefined {
    const counted = this.#counted(bytes)
    if (!this.#events.take(tenant)) return undefined
    if (!this.#bytes.take(tenant, counted)) {
      this.#events.give(tenant)
      return undefined
    }
    return () => {
      this.#events.give(tenant)
      this.#bytes.give(tenant, counted)
    }
  }

  /** True where a tenant has more than half of all that are held, and may not have another one. */
  isFull(tenant: string, bytes: number): boolean {
    return (
      this.#events.usedBy(tenant) > this.size / 2 &&
      !(this.#events.fits(tenant) && this.#bytes.fits(tenant, this.#counted(bytes)))
    )
  }

  #counted(bytes: number): number {
    return Math.min(bytes, this.#maxBytes * largestShare)
  }
}
