import { OrderedSet } from "../../broker/ordered-map.ts"
import type { TenantLoad } from "../../metrics/worker-metrics.ts"
import type { CapacityLimits, CapacityShares, Reservation, SpeedClass } from "./tenant-capacity.ts"
import { TenantCapacity } from "./tenant-capacity.ts"

/** Default limits of a worker: requests in flight, and bytes of bodies in memory. */
export const defaultLoad = { maxInFlight: 1_024, maxBytes: 128 * 1024 * 1024 }

/** Maximum tenants that are offered a turn until one takes it: the others follow next time. */
const maxOffers = 8
/** Idle tenants are forgotten when this many are in memory, and then twice as many as are busy. */
const minRemembered = 1_000

/**
 * A worker's capacity for requests, shared by the lanes of all its partitions: first by tenant, then
 * by endpoint. A tenant gets an equal part, and beyond it what others leave of all but the last
 * eighth (`policy/shares.ts`); {@link TenantCapacity} divides it among the tenant's
 * endpoints. Tenants that wait get their turns in order, and so do the lanes of each.
 */
export class CapacityPool implements CapacityShares {
  readonly size: CapacityLimits
  readonly used = { requests: 0, bytes: 0 }
  active = 0
  readonly #hasOthers: () => boolean
  readonly #tenants = new Map<string, TenantCapacity>()
  /** Tenants with lanes that wait; the one whose turn comes next is first. */
  readonly #waiting = new OrderedSet<TenantCapacity>()
  #remembered = minRemembered
  #isGiving = false

  /**
   * @param hasOthers true where several tenants have endpoints: then the last eighth is left for
   *   others even while one tenant alone is busy. (Default: never)
   */
  constructor(size: CapacityLimits, hasOthers: () => boolean = () => false) {
    this.size = size
    this.#hasOthers = hasOthers
  }

  /** Returns what a tenant may use. Whoever keeps it for longer than a call holds it (`hold`). */
  of(tenant: string): TenantCapacity {
    const known = this.#tenants.get(tenant)
    if (known !== undefined) return known
    if (this.#tenants.size >= this.#remembered) this.#forgetIdle()
    const made = new TenantCapacity(tenant, this)
    this.#tenants.set(tenant, made)
    return made
  }

  /** True where bodies use less than half of the capacity: then every tenant may have more. */
  get isAmple(): boolean {
    return this.used.bytes < this.size.bytes / 2
  }

  /** True where several tenants have endpoints. */
  get isShared(): boolean {
    return this.#hasOthers()
  }

  sharersWith(isActive: boolean): number {
    return Math.max(this.active + (isActive ? 0 : 1), this.isShared ? 2 : 1)
  }

  /** Requests in flight, how many of them are slow, and how many may be in flight. */
  get requests(): { readonly inFlight: number; readonly slow: number; readonly max: number } {
    let slow = 0
    for (const tenant of this.#tenants.values()) slow += tenant.slow.requests
    return { inFlight: this.used.requests, slow, max: this.size.requests }
  }

  /** What each tenant uses that uses some or waits. */
  *loads(): Generator<TenantLoad> {
    for (const tenant of this.#tenants.values()) if (!tenant.isIdle) yield tenant.load
  }

  awaitTurn(tenant: TenantCapacity): void {
    this.#waiting.add(tenant)
  }

  /** Gives back all of a reservation, and offers the capacity to the next lane. */
  giveBack(tenant: TenantCapacity, use: Reservation): void {
    tenant.giveBack(use)
    this.next()
  }

  /** Gives a waiting lane its turn, if there is capacity. */
  next(): void {
    // A request that begins may end at once and call this again: the next call uses that capacity.
    if (this.#isGiving || this.#waiting.size === 0) return
    this.#isGiving = true
    try {
      this.#giveTurn()
    } finally {
      this.#isGiving = false
    }
  }

  #giveTurn(): void {
    let left = Math.min(this.#waiting.size, maxOffers)
    while (left-- > 0 && this.used.requests < this.size.requests) {
      const tenant = this.#waiting.takeOldest()
      if (tenant === undefined) return
      const isTaken = tenant.giveTurn()
      if (tenant.isWaiting) this.#waiting.add(tenant)
      if (isTaken) return
    }
  }

  #forgetIdle(): void {
    for (const [name, tenant] of this.#tenants) if (tenant.isIdle) this.#tenants.delete(name)
    this.#remembered = Math.max(minRemembered, 2 * this.#tenants.size)
  }
}

/** Endpoints whose backlog waits for body capacity, each once. */
export class CapacityWaiters {
  readonly #waiting = new Set<string>()
  readonly #onCapacity: (key: string) => void

  /** @param onCapacity called when an endpoint has capacity again. */
  constructor(onCapacity: (key: string) => void) {
    this.#onCapacity = onCapacity
  }

  /** Puts an endpoint in line, unless it has capacity or is in line already. */
  await(key: string, capacity: TenantCapacity, speed: SpeedClass): void {
    if (capacity.bytesFor(speed) > 0 || this.#waiting.has(key)) return
    const waiter = {
      turn: () => {
        if (capacity.bytesFor(speed) === 0) {
          capacity.wait(speed, 1, waiter)
          return false
        }
        this.#waiting.delete(key)
        this.#onCapacity(key)
        return true
      }
    }
    this.#waiting.add(key)
    capacity.wait(speed, 1, waiter)
  }
}
