/** Length of a slot, ms, and how much of one tenant it takes: 200 a second. */
const slotMs = 100
const mostInSlot = 20
/** Slots that are remembered before those that have passed are looked for. */
const manySlots = 1_000

interface Slots {
  /** How much is booked for each slot. */
  readonly booked: Map<number, number>
  /**
   * By a slot that is full, the one that was found free for it last: all before that are full as well,
   * and there may be thousands.
   */
  readonly onward: Map<number, number>
}

/**
 * Times at which something begins for a tenant, spread so that no second has more than 200 of them.
 * Ten thousand endpoints that fail together are due together, and each costs broker and worker
 * several requests: begun at once, they keep everybody waiting for seconds.
 */
export class SpreadTimes {
  readonly #tenants = new Map<string, Slots>()
  #size = 0
  #manySlots = manySlots

  /**
   * Returns the first time at or after `at` that is free for the tenant, and takes it. Times in ms since
   * the epoch.
   *
   * @param now times before it are forgotten.
   */
  book(tenant: string, at: number, now: number): number {
    if (this.#size >= this.#manySlots) this.#forgetBefore(now)
    const slots = this.#tenants.get(tenant) ?? { booked: new Map(), onward: new Map() }
    this.#tenants.set(tenant, slots)
    const wanted = Math.floor(at / slotMs)
    let slot = slots.onward.get(wanted) ?? wanted
    let booked = slots.booked.get(slot) ?? 0
    while (booked >= mostInSlot) booked = slots.booked.get(++slot) ?? 0
    if (booked === 0) this.#size++
    slots.booked.set(slot, booked + 1)
    if (slot !== wanted) slots.onward.set(wanted, slot)
    return slot === wanted ? at : slot * slotMs
  }

  /** Number of slots in memory. */
  get size(): number {
    return this.#size
  }

  #forgetBefore(now: number): void {
    const current = Math.floor(now / slotMs)
    for (const [tenant, { booked, onward }] of this.#tenants) {
      for (const slot of booked.keys()) if (slot < current && booked.delete(slot)) this.#size--
      for (const slot of onward.keys()) if (slot < current) onward.delete(slot)
      if (booked.size === 0) this.#tenants.delete(tenant)
    }
    this.#manySlots = Math.max(manySlots, 2 * this.#size)
  }
}
