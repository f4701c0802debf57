import { type Clock, Effect, Random } from "effect"
import { Turns } from "../broker/turns.ts"
import type { Delivery, Progress } from "../domain/delivery.ts"
import { circuitOf, endpointKey, isHeldBack, tenantOfKey } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import type { AttemptOutcome } from "../domain/outcome.ts"
import { cooledDown, heldAtMost, isHeld, mayProbe, toHalfOpen } from "../policy/circuit.ts"
import type { SpreadTimes } from "../policy/spread-times.ts"
import type { LiveEndpoint } from "./directory.ts"
import { Directory } from "./directory.ts"
import type { EndpointEvents, EndpointEventsOptions } from "./endpoint-events.ts"
import { makeEndpointEvents } from "./endpoint-events.ts"
import { HealthState, spreadOver } from "./health-state.ts"
import type { HealthRecord, StoredHealth } from "./health-store.ts"
import { makeHealthRecord } from "./health-store.ts"
import type { HostLimits, HostPlace } from "./host-limits.ts"
import { Throttles } from "./throttles.ts"

/** Pause between checks of ownership, ms. */
const ownerPause = 250
/**
 * Maximum endpoints that a tick revises although nothing tells that something is due: they take turns.
 * The configuration of each may have to be decoded, 20 µs, so thousands would hold up all tenants.
 */
const maxRevisedInTurn = 20
/** Concurrency for a removed or disabled endpoint: its deliveries only end. */
const ending = 16
const removed = { generation: "", isDisabled: true, isHeldBack: false }

interface EndpointHealthOptions extends EndpointEventsOptions {
  readonly clock: Clock.Clock
  /** False while the clock may be wrong: nothing ends by it then. */
  readonly isClockTrusted: () => boolean
  /** True once this worker will not be owner again, unless it takes the partition anew. */
  readonly isOver: () => boolean
  /** Caps of hosts, for all partitions of the worker. */
  readonly hosts: HostLimits
  /** When endpoints that take nothing are tried again, for all partitions of the worker. */
  readonly spreadTimes: SpreadTimes
}

export const makeEndpointHealth = Effect.fnUntraced(function* (options: EndpointHealthOptions) {
  const directory = yield* Directory
  const events = yield* makeEndpointEvents(options)
  const health = new EndpointHealth(options, directory, events, yield* Random.Random)
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      directory.onUnavailable((tenant, id) => health.unavailable(endpointKey(tenant, id)))
    ),
    (stop) => Effect.sync(stop)
  )
  return health
})

/**
 * Health of a partition's endpoints, and what they may take. The partition's owner judges each
 * outcome, stores the result in the health bucket, and records changes as facts.
 *
 * Arrow fields are functions that others are given without the object.
 */
export class EndpointHealth {
  readonly #options: EndpointHealthOptions
  readonly #directory: Directory["Service"]
  readonly #events: EndpointEvents
  readonly #random: typeof Random.Random.Service
  readonly #states = new Map<string, HealthState>()
  readonly #turns = new Turns(() => this.#states.entries())
  /** The version of the directory at the last tick. */
  #version: number | undefined
  readonly #records = new Map<string, HealthRecord>()
  /** Endpoints that were seen paused or suspended. */
  readonly #paused = new Set<string>()
  readonly #throttles: Throttles
  readonly #freedListeners = new Set<(key: string) => void>()

  constructor(
    options: EndpointHealthOptions,
    directory: Directory["Service"],
    events: EndpointEvents,
    random: typeof Random.Random.Service
  ) {
    this.#options = options
    this.#directory = directory
    this.#events = events
    this.#random = random
    this.#throttles = new Throttles(options.hosts)
  }

  /** Loads the health that former owners stored. */
  load(found: ReadonlyArray<StoredHealth>): void {
    for (const { health, key, revision } of found) {
      const endpoint = this.#directory.find(key)
      if (endpoint !== undefined)
        this.#states.set(key, this.#stateOf(endpoint, { health, revision }))
    }
  }

  /** Returns the number of requests that an endpoint may have in flight now. */
  readonly limit = (key: string): number => {
    const { generation, isDisabled, isHeldBack } = this.#directory.outline(key) ?? removed
    if (isDisabled) return ending
    if (isHeldBack) {
      this.#paused.add(key)
      return 0
    }
    if (this.#paused.has(key)) return 0
    const state = this.#states.get(key)
    const isJudged = state?.isOf(generation) === true
    // `tick` ends the pause, so that waiting deliveries start gradually.
    if (isJudged && state.health.notBefore !== undefined) return 0
    const circuit = isJudged ? state.health.circuit.state : "closed"
    if (circuit === "open") return 0
    if (circuit === "half-open") return 1
    const endpoint = this.#directory.find(key)
    const most = endpoint === undefined ? ending : this.#throttles.limit(endpoint)
    return isJudged ? Math.min(most, state.limit ?? most) : most
  }

  /** True if the endpoint's circuit is closed. */
  isClosed(key: string): boolean {
    return (this.#states.get(key)?.health.circuit.state ?? "closed") === "closed"
  }

  /**
   * True if the circuit is open and deliveries are dead-lettered instead of waiting. Those of a
   * suspended endpoint wait, also while its circuit is still open. So do those that come once its
   * cool-down is over: the next tick makes it half-open, and one of them is its probe.
   */
  refuses(key: string): boolean {
    const endpoint = this.#directory.find(key)
    const state = this.#states.get(key)
    if (endpoint === undefined || state?.health.circuit.state !== "open") return false
    const { config } = endpoint
    if (config.suspended !== undefined || !state.isOf(config.generation)) return false
    return (
      circuitOf(config).onOpen === "dead-letter" &&
      !mayProbe(state.health, this.#options.clock.currentTimeMillisUnsafe())
    )
  }

  /**
   * Counts a request against the endpoint's rate and its host's cap. Returns false if one of them
   * does not allow it now; the lane waits in line for its host then.
   */
  readonly admit = (key: string, place: HostPlace): boolean => {
    const endpoint = this.#directory.find(key)
    return endpoint === undefined || this.#throttles.admit(endpoint, place)
  }

  /** Returns how many requests the endpoint's rate, and its host's cap, allow within a second. */
  readonly soon = (key: string): number => {
    const endpoint = this.#directory.find(key)
    return endpoint === undefined ? Number.POSITIVE_INFINITY : this.#throttles.soon(endpoint)
  }

  /**
   * Judges an outcome. A success of a healthy endpoint leaves no health state behind. Returns when
   * the next request is allowed if the outcome is that of a probe.
   *
   * @param progress of the delivery before the attempt.
   */
  answered(
    endpoint: LiveEndpoint,
    delivery: Delivery,
    sent: AttemptOutcome,
    progress: Pick<Progress, "lastAttemptAt">
  ): AttemptOutcome["probe"] {
    const ok = sent.verdict === "delivered"
    const { adapt, generation } = endpoint.config
    const isFormer = () => this.#directory.find(endpoint.key)?.config.generation !== generation
    // A late failure of a former endpoint of this name says nothing about the current one.
    if (!ok && isFormer()) return undefined
    if (adapt === true && !isFormer()) this.#throttles.note(endpoint, sent)
    let state = this.#states.get(endpoint.key)
    if (state === undefined || !state.isOf(generation)) {
      if (ok) return undefined
      state = this.#stateOf(endpoint)
      this.#states.set(endpoint.key, state)
    }
    const spread = this.#random.nextDoubleUnsafe()
    const judged = state.judge(endpoint, delivery, sent, progress, spread)
    const { at } = sent
    for (const kind of judged.transitions) {
      const { until = at, why = "" } = state.health.circuit
      const opened = { nextAttemptAt: until, reason: why }
      this.#events.append(endpoint, kind, at, kind === "circuit-opened" ? opened : {})
    }
    if (judged.giveUp !== undefined && this.#options.isClockTrusted())
      this.#events.giveUp(endpoint, judged.giveUp)
    return judged.probe
  }

  /**
   * Ends what makes an endpoint wait before it is tried: the cool-down of its circuit, and the
   * receiver's Retry-After if that is to be ignored.
   */
  readonly probeNow = (key: string, ignoresRetryAfter: boolean): void => {
    const state = this.#states.get(key)
    if (state === undefined) return
    const now = this.#options.clock.currentTimeMillisUnsafe()
    state.change(cooledDown(state.health, now))
    if (ignoresRetryAfter && state.health.notBefore !== undefined)
      state.change({ ...state.health, notBefore: now })
    this.#revise(key, state, now)
  }

  /**
   * Calls the listener with each endpoint that may take more than before, until the returned
   * function is called.
   */
  onFreed(listener: (key: string) => void): () => void {
    this.#freedListeners.add(listener)
    return () => this.#freedListeners.delete(listener)
  }

  #freed(key: string): void {
    for (const listener of this.#freedListeners) listener(key)
  }

  /** Called for an endpoint that was disabled, suspended, removed or replaced. */
  unavailable(key: string): void {
    if (this.#directory.find(key) === undefined) this.#throttles.forget(key)
  }

  /** Goes over the endpoints that are not healthy: some may be tried again, some forgotten. */
  tick(): void {
    const { clock, holds, isClockTrusted } = this.#options
    if (!holds() || !isClockTrusted()) return
    this.#events.appendWaiting()
    // Drops records of states that an earlier tick deleted: their last write has begun since, so
    // `isIdle` sees it.
    if (this.#records.size > this.#states.size)
      for (const [key, record] of this.#records)
        if (!this.#states.has(key) && record.isIdle()) this.#records.delete(key)
    const now = clock.currentTimeMillisUnsafe()
    this.#endPauses()
    const version = this.#directory.version()
    const mayDiffer = version !== this.#version
    this.#version = version
    for (const [key, state] of this.#states)
      if (state.isDue(now) || (mayDiffer && state.revisedFor !== this.#revisionOf(key)))
        this.#revise(key, state, now)
    for (let left = Math.min(maxRevisedInTurn, this.#states.size); left > 0; left--) {
      const [key, state] = this.#turns.next() ?? []
      if (key !== undefined && state !== undefined) this.#revise(key, state, now)
    }
  }

  #revisionOf(key: string): number | undefined {
    return this.#directory.outline(key)?.revision
  }

  /** Lets endpoints that were resumed start gradually. */
  #endPauses(): void {
    for (const key of this.#paused) {
      if (this.#directory.outline(key)?.isHeldBack === true) continue
      const endpoint = this.#directory.find(key)
      this.#paused.delete(key)
      if (endpoint !== undefined) {
        const state = this.#states.get(key) ?? this.#stateOf(endpoint)
        state.limit = 1
        this.#states.set(key, state)
      }
      this.#freed(key)
    }
  }

  /** Applies to an endpoint's state what time has changed. */
  #revise(key: string, state: HealthState, now: number): void {
    const endpoint = this.#directory.find(key)
    // An endpoint that is enabled or resumed starts anew: the failures it was given up for are over.
    const isGone = endpoint === undefined || endpoint.config.disabled !== undefined
    if (isGone || !state.isOf(endpoint.config.generation)) {
      this.#states.delete(key)
      this.#throttles.forget(key)
      this.#options.run(state.record.write(undefined))
      return
    }
    state.revisedFor = endpoint.revision
    if (endpoint.config.suspended !== undefined) state.forgetFailures()
    if (!isHeldBack(endpoint.config)) state.noteRevision(endpoint, now)
    state.storeIfDue()
    const health = heldAtMost(state.health, now, endpoint.longestRetryAfterCap)
    if (health !== state.health) state.change(health)
    if (health.circuit.state === "open" && mayProbe(health, now)) {
      state.change(toHalfOpen(health, now))
      this.#events.append(endpoint, "circuit-half-opened", now, {})
      this.#freed(key)
    } else if (health.notBefore !== undefined && !isHeld(health, now)) {
      const { notBefore: _, ...rest } = health
      state.change(rest)
      state.limit ??= 1
      this.#freed(key)
    } else if (state.isOver) {
      const { over = 0 } = circuitOf(endpoint.config).rate ?? {}
      if (state.hasRested(over)) this.#states.delete(key)
    }
  }

  /** Stores pending counts for the next owner. */
  flush(): void {
    for (const state of this.#states.values()) state.flush()
  }

  /** Returns the health of an endpoint that is not simply healthy, or undefined. */
  readonly of = (key: string): Health | undefined => this.#states.get(key)?.health

  /**
   * Number of endpoints whose circuit is not closed, by tenant. Those that are paused or suspended do
   * not count: nothing probes them, so their circuits would stay open for as long.
   */
  readonly openCircuits = (): ReadonlyMap<string, number> => {
    const open = new Map<string, number>()
    for (const [key, { health }] of this.#states) {
      if (health.circuit.state === "closed") continue
      if (this.#directory.outline(key)?.isHeldBack !== false) continue
      const tenant = tenantOfKey(key)
      open.set(tenant, (open.get(tenant) ?? 0) + 1)
    }
    return open
  }

  /** Number of endpoints that are not simply healthy. */
  size(): number {
    return this.#states.size
  }

  /** Number of endpoints with a health record in memory. */
  remembered(): number {
    return this.#records.size
  }

  /** Number of endpoints with a rate or an adaptive limit in memory. */
  throttled(): number {
    return this.#throttles.size
  }

  #stateOf(endpoint: LiveEndpoint, found?: { health: Health; revision: number }): HealthState {
    const { clock, spreadTimes } = this.#options
    const record = this.#recordOf(endpoint.key, found?.revision ?? 0)
    const now = clock.currentTimeMillisUnsafe()
    const health = found && spreadOver(spreadTimes, endpoint.config.tenant, found.health, now)
    return new HealthState(endpoint, record, health, spreadTimes, this.#write)
  }

  /** One record per key: writes of a second one could interleave with those of the first. */
  #recordOf(key: string, revision: number): HealthRecord {
    const record = this.#records.get(key) ?? makeHealthRecord(key, revision, this.#asOwner)
    this.#records.set(key, record)
    return record
  }

  /** Passes for the owner, waits while ownership is unknown, and interrupts once it is over. */
  readonly #asOwner: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#options.holds()) return Effect.void
    return this.#options.isOver() ? Effect.interrupt : Effect.delay(this.#asOwner, ownerPause)
  })

  /** A former owner's view of an endpoint is not stored. */
  readonly #write = (state: HealthState, health: Health | undefined): void => {
    if (!this.#options.holds()) return
    state.noteStored()
    this.#options.run(state.record.write(health))
  }
}
