import { Effect, FiberSet, Schema } from "effect"
import { HeldEvents } from "./held-events.ts"
import type { QueueDepth } from "./queue-depth.ts"

/** Events with more deliveries than this are large. */
const largeAbove = 64
/** Maximum turns at the same time, of all tenants. A tenant has one. */
const maxTurns = 8
/** True where so many deliveries of one event are made in turns. */
export const isLarge = (deliveries: number): boolean => deliveries > largeAbove

/** The router stops: what has no turn yet is left to the next one. */
export class RouterStops extends Schema.TaggedError<RouterStops>()("RouterStops", {}) {
  override get message() {
    return "the worker stops"
  }
}

/** Its tenant has as many events here as it may have: the broker delivers this one again. */
export class TooManyHeld extends Schema.TaggedError<TooManyHeld>()("TooManyHeld", {}) {
  override get message() {
    return "its tenant has too many events that wait"
  }
}

/** A part of an event's plan that waits for its turn. */
interface Waiting {
  readonly deliveries: number
  /** Called once: with true when it has its turn, with false when the router stops. */
  readonly begin: (hasTurn: boolean) => void
}

/** The turns of one large event, which are those of its tenant. */
export interface LargeEvent {
  /**
   * Ends the turn that the event has, and waits for its next one. Fails when the router stops.
   *
   * @param deliveries how many are made in that turn.
   */
  readonly turn: (deliveries: number) => Effect.Effect<void, RouterStops>
  /** Ends its turn: all deliveries of it have begun. */
  readonly over: () => void
  /** Ends its turn, and holds it no longer. */
  readonly leave: () => void
}

/**
 * Turns of tenants, in order. Within a tenant, whoever waits longest is first, except that an event
 * that was begun is finished first.
 */
export class TenantTurns {
  readonly #lines = new Map<string, Array<Waiting>>()
  readonly #busy = new Set<string>()
  #isClosed = false
  readonly #mayGive: () => void

  /** @param mayGive called when somebody may have a turn. */
  constructor(mayGive: () => void) {
    this.#mayGive = mayGive
  }

  /** Waits in the line of a tenant. @param isBegun whether it had a turn before. */
  wait(tenant: string, waiting: Waiting, isBegun: boolean): void {
    if (this.#isClosed) {
      waiting.begin(false)
      return
    }
    const line = this.#lines.get(tenant) ?? []
    this.#lines.set(tenant, line)
    if (isBegun) line.unshift(waiting)
    else line.push(waiting)
    this.#look()
  }

  /** Takes out of its line what does not wait any more. */
  forget(tenant: string, waiting: Waiting): void {
    const line = this.#lines.get(tenant) ?? []
    const index = line.indexOf(waiting)
    if (index >= 0) line.splice(index, 1)
    if (line.length === 0) this.#lines.delete(tenant)
  }

  over(tenant: string): void {
    this.#busy.delete(tenant)
    this.#look()
  }

  /** True while somebody waits who may have a turn. */
  get isWanted(): boolean {
    return this.#next() !== undefined
  }

  /** Gives the next tenant its turn, if there is one. Returns the number of deliveries. */
  give(): number {
    const tenant = this.#next()
    if (tenant === undefined) return 0
    const line = this.#lines.get(tenant) ?? []
    const first = line.shift()
    this.#lines.delete(tenant)
    if (line.length > 0) this.#lines.set(tenant, line)
    if (first === undefined) return 0
    this.#busy.add(tenant)
    first.begin(true)
    return first.deliveries
  }

  /** Refuses all that wait, from now on. */
  close(): void {
    this.#isClosed = true
    const lines = [...this.#lines.values()]
    this.#lines.clear()
    for (const { begin } of lines.flat()) begin(false)
  }

  #look(): void {
    if (this.isWanted) this.#mayGive()
  }

  #next(): string | undefined {
    if (this.#busy.size >= maxTurns) return undefined
    for (const tenant of this.#lines.keys()) if (!this.#busy.has(tenant)) return tenant
    return undefined
  }
}

class HeldEvent implements LargeEvent {
  readonly #turns: TenantTurns
  readonly #tenant: string
  readonly #began: (deliveries: number) => void
  readonly #left: () => void
  #hasTurn = false
  #isBegun = false

  constructor(
    turns: TenantTurns,
    tenant: string,
    began: (deliveries: number) => void,
    left: () => void
  ) {
    this.#turns = turns
    this.#tenant = tenant
    this.#began = began
    this.#left = left
  }

  turn(deliveries: number): Effect.Effect<void, RouterStops> {
    return Effect.callback((resume) => {
      const hadTurn = this.#hasTurn
      this.#hasTurn = false
      const begin = (hasTurn: boolean) => {
        this.#hasTurn = hasTurn
        if (hasTurn) this.#began(deliveries)
        resume(hasTurn ? Effect.void : Effect.fail(new RouterStops()))
      }
      const waiting = { deliveries, begin }
      this.#turns.wait(this.#tenant, waiting, this.#isBegun)
      this.#isBegun = true
      // Only now, so that it comes before others of its tenant.
      if (hadTurn) this.#turns.over(this.#tenant)
      return Effect.sync(() => this.#turns.forget(this.#tenant, waiting))
    })
  }

  over(): void {
    if (this.#hasTurn) this.#turns.over(this.#tenant)
    this.#hasTurn = false
  }

  leave(): void {
    this.over()
    this.#left()
  }
}

/**
 * Makes the line of events with many deliveries. They would fill the queues faster than the owners
 * of the partitions empty them, and then what others have in a queue waits behind all of that. So
 * they are routed in parts: a tenant's one after the other, tenants in turn, and none while the
 * queues are deep. All other events are routed meanwhile.
 *
 * @param maxBytes maximum bytes of bodies of the events that are held.
 */
export const makeLargeEvents = Effect.fnUntraced(function* (depth: QueueDepth, maxBytes: number) {
  const run = yield* FiberSet.makeRuntime<never>()
  const held = new HeldEvents(maxBytes)
  let isGiving = false
  const turns = new TenantTurns(() => {
    if (isGiving) return
    isGiving = true
    run(giveAll)
  })
  const giveAll = Effect.whileLoop({
    while: () => turns.isWanted,
    body: () =>
      Effect.map(depth.shallow, () => {
        depth.routed(turns.give())
      }),
    step: () => undefined
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        isGiving = false
      })
    )
  )
  return {
    /**
     * Holds an event for its turns; undefined where its tenant has as many as it may have here.
     *
     * @param began called as a turn begins, with the number of deliveries that are made in it.
     */
    hold: (
      tenant: string,
      bytes: number,
      began: (deliveries: number) => void
    ): LargeEvent | undefined => {
      const letGo = held.hold(tenant, bytes)
      return letGo === undefined ? undefined : new HeldEvent(turns, tenant, began, letGo)
    },
    /** Returns how many events are held. */
    size: () => held.size,
    /** Gives no more turns: what waits for one is given back. */
    close: () => turns.close()
  }
})
