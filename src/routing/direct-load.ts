import type { Linked } from "../broker/intrusive-list.ts"
import { IntrusiveList } from "../broker/intrusive-list.ts"
import { allowanceOf } from "../policy/shares.ts"
import type { Timer } from "../time/timers.ts"
import { timers } from "../time/timers.ts"

/** Maximum direct deliveries at the same time, those that wait in lanes included. */
export const maxDirectDeliveries = 768
/** Idle tenants are forgotten when this many are in memory, and then twice as many as are busy. */
const minRemembered = 1_000

/** Direct deliveries of one tenant under way. */
export interface TenantDirectLoad {
  deliveries: number
  /** Bytes of their events' bodies. */
  bytes: number
}

/**
 * The direct deliveries under way, which tenants share: receivers that are silent hold theirs until
 * they time out, and must not send the deliveries of other tenants through the queue.
 */
export class DirectLoad {
  readonly #used: TenantDirectLoad = { deliveries: 0, bytes: 0 }
  readonly #tenants = new Map<string, TenantDirectLoad>()
  readonly #maxBytes: number
  readonly #hasOthers: () => boolean
  /** Number of tenants with direct deliveries. */
  #active = 0
  #remembered = minRemembered

  /**
   * @param maxBytes of event bodies.
   * @param hasOthers true where several tenants have endpoints: then an eighth is left for others.
   */
  constructor(maxBytes: number, hasOthers: () => boolean) {
    this.#maxBytes = maxBytes
    this.#hasOthers = hasOthers
  }

  of(tenant: string): TenantDirectLoad {
    const known = this.#tenants.get(tenant)
    if (known !== undefined) return known
    if (this.#tenants.size >= this.#remembered) this.#forgetIdle()
    const made = { deliveries: 0, bytes: 0 }
    this.#tenants.set(tenant, made)
    return made
  }

  /** True where one more direct delivery of the tenant may begin. Otherwise it is stored. */
  mayBegin({ bytes, deliveries }: Readonly<TenantDirectLoad>): boolean {
    const used = this.#used
    const active = this.#active + (deliveries === 0 ? 1 : 0)
    const sharers = Math.max(active, this.#hasOthers() ? 2 : 1)
    return (
      deliveries < allowanceOf(deliveries, used.deliveries, sharers, maxDirectDeliveries) &&
      bytes < allowanceOf(bytes, used.bytes, sharers, this.#maxBytes)
    )
  }

  /** Counts deliveries and bytes of a tenant that are under way, or negative ones that are not. */
  add(load: TenantDirectLoad, deliveries: number, bytes: number): void {
    const before = load.deliveries
    load.deliveries += deliveries
    load.bytes += bytes
    this.#used.deliveries += deliveries
    this.#used.bytes += bytes
    if (before === 0 && load.deliveries > 0) this.#active++
    else if (before > 0 && load.deliveries === 0) this.#active--
  }

  #forgetIdle(): void {
    for (const [tenant, { deliveries }] of this.#tenants)
      if (deliveries === 0) this.#tenants.delete(tenant)
    this.#remembered = Math.max(minRemembered, 2 * this.#tenants.size)
  }
}

/**
 * How long direct deliveries may keep an event in the prefetch window, ms: `answers` applies when
 * all requests are sent, `line` when some deliveries still wait in lanes.
 */
const maxDirectMs = { answers: 20, line: 100 }
/** Interval of the check while there are such events, ms. */
const tickMs = 10

/** An event with direct deliveries in flight. */
export interface TimedEvent extends Linked<TimedEvent> {
  /** When the first of them began, ms of the monotonic clock. */
  since: number
  /** True where none of them waits in a lane. */
  readonly areRequestsBegun: boolean
  /** Called once when the direct deliveries exceed their time. */
  becameSlow(): void
}

/** Watches events with direct deliveries, and reports each that becomes slow. */
export class SlowEventTimer {
  readonly #young = new IntrusiveList<TimedEvent>()
  #timer: Timer | undefined

  /** Called when a direct delivery of an event begins. Watches the event, unless it does already. */
  add(event: TimedEvent): void {
    if (this.#young.has(event)) return
    event.since = timers.monotonicMs()
    this.#young.add(event)
    this.#timer ??= timers.after(tickMs, () => this.#look())
  }

  remove(event: TimedEvent): void {
    this.#young.remove(event)
  }

  /** Stops the timer: no event is reported any more. */
  close(): void {
    timers.cancel(this.#timer)
  }

  #look(): void {
    this.#timer = undefined
    const now = timers.monotonicMs()
    for (const event of this.#young) {
      const age = now - event.since
      if (age < maxDirectMs.answers) break
      if (age < maxDirectMs.line && !event.areRequestsBegun) continue
      this.#young.remove(event)
      event.becameSlow()
    }
    if (this.#young.size > 0) this.#timer ??= timers.after(tickMs, () => this.#look())
  }
}
