import { type Clock, Effect, Random } from "effect"
import type { AttemptOutcome } from "../domain/attempt-outcome.ts"
import type { Delivery } from "../domain/delivery.ts"
import { deliveryId } from "../domain/delivery.ts"
import { circuitOf } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import { healthy, isHealthy } from "../domain/health.ts"
import {
  afterOutcome,
  isHeld,
  isRamping,
  mayProbe,
  RateWindow,
  ramp,
  toHalfOpen
} from "../policy/circuit.ts"
import { parseRetryAfter } from "../policy/retry-after.ts"
import type { LiveEndpoint } from "./directory.ts"
import { Directory } from "./directory.ts"
import type { EndpointNewsOptions } from "./endpoint-events.ts"
import { makeEndpointNews } from "./endpoint-events.ts"
import type { HealthRecord, StoredHealth } from "./health-record.ts"
import { makeHealthRecord } from "./health-record.ts"
import { Throttles } from "./throttles.ts"

/** Minimum time between stores of a change in counts only, ms. */
const countingPause = 5_000
/** Pause between checks of ownership, ms. */
const ownerPause = 250
/** Concurrency for a removed or disabled endpoint: its deliveries only end. */
const ending = 16

export interface EndpointHealthOptions extends EndpointNewsOptions {
  readonly clock: Clock.Clock
  /** True once this worker will not be owner again, unless it takes the partition anew. */
  readonly isOver: () => boolean
  /** Called for an endpoint that may take more than before. */
  readonly freed: (key: string) => void
}

/** State of an endpoint that failed lately or is recovering. */
interface State {
  health: Health
  readonly record: HealthRecord
  readonly window: RateWindow
  lastFailure: number
  /** The health that was last written to the bucket, and when (ms since the epoch). */
  stored: Health | undefined
  storedAt: number
  /** Concurrency limit while the endpoint recovers; undefined once it has. */
  limit: number | undefined
}

/**
 * Health of a partition's endpoints, and what they may take. The partition's owner judges each
 * outcome, stores the result in the health bucket, and records changes as facts.
 */
export const makeEndpointHealth = Effect.fnUntraced(function* (options: EndpointHealthOptions) {
  const { clock, run } = options
  const directory = yield* Directory
  const { giveUp, tell, tellAll } = yield* makeEndpointNews(options)
  const random = yield* Random.Random
  const states = new Map<string, State>()
  const records = new Map<string, HealthRecord>()
  const paused = new Set<string>()
  const throttles = new Throttles()

  const asOwner: Effect.Effect<void> = Effect.suspend(() => {
    if (options.holds()) return Effect.void
    return options.isOver() ? Effect.interrupt : Effect.delay(asOwner, ownerPause)
  })

  /** One record per key: writes of a second one could interleave with those of the first. */
  const recordOf = (key: string, revision: number) => {
    const record = records.get(key) ?? makeHealthRecord(key, revision, asOwner)
    records.set(key, record)
    return record
  }

  const stateOf = (
    endpoint: LiveEndpoint,
    found?: { health: Health; revision: number }
  ): State => ({
    health: found?.health ?? healthy(endpoint.config.generation),
    record: recordOf(endpoint.key, found?.revision ?? 0),
    window: new RateWindow(),
    lastFailure: 0,
    stored: found?.health,
    storedAt: 0,
    limit: found !== undefined && isRamping(found.health) ? 1 : undefined
  })

  const isOf = (state: State, { config }: LiveEndpoint) =>
    state.health.generation === config.generation

  const store = (state: State, now: number) => {
    if (!options.holds()) return
    state.storedAt = now
    state.stored = state.health
    run(state.record.write(isHealthy(state.health) ? undefined : state.health))
  }

  /**
   * Changes health. A change of the circuit, `failingSince` or `notBefore` is stored at once; a
   * change in counts only, with the next tick that is due.
   */
  const change = (state: State, health: Health, now: number) => {
    const { circuit, failingSince, notBefore } = state.health
    state.health = health
    const decides =
      health.circuit !== circuit ||
      health.failingSince !== failingSince ||
      health.notBefore !== notBefore
    if (decides) store(state, now)
  }

  /**
   * When the receiver's Retry-After, capped by the endpoint's policy, allows the next request, ms
   * since the epoch.
   */
  const retryAt = (endpoint: LiveEndpoint, { at, result, verdict }: AttemptOutcome) => {
    const wait = verdict === "retry" ? parseRetryAfter(result.retryAfter, at) : undefined
    return wait === undefined ? {} : { retryAt: at + Math.min(wait, endpoint.retryAfterCap) }
  }

  /** Goes over the endpoints that are not healthy: some may be tried again, some forgotten. */
  const tick = () => {
    if (!options.holds()) return
    tellAll()
    // Drops records of states that an earlier tick deleted: their last write has begun since, so
    // `isIdle` sees it.
    for (const [key, record] of records)
      if (!states.has(key) && record.isIdle()) records.delete(key)
    const now = clock.currentTimeMillisUnsafe()
    for (const key of paused) {
      const endpoint = directory.find(key)
      if (endpoint?.config.paused !== undefined) continue
      paused.delete(key)
      if (endpoint !== undefined) {
        const state = states.get(key) ?? stateOf(endpoint)
        state.limit = 1
        states.set(key, state)
      }
      options.freed(key)
    }
    for (const [key, state] of states) {
      const endpoint = directory.find(key)
      // An endpoint that is enabled again starts anew: the failures it was disabled for are over.
      const isGone = endpoint === undefined || endpoint.config.disabled !== undefined
      if (isGone || !isOf(state, endpoint)) {
        states.delete(key)
        throttles.forget(key)
        run(state.record.write(undefined))
        continue
      }
      const { health } = state
      if (health !== state.stored && now - state.storedAt >= countingPause) store(state, now)
      if (health.circuit.state === "open" && mayProbe(health, now)) {
        change(state, toHalfOpen(health, now), now)
        tell(endpoint, "circuit-half-opened", now, {})
        options.freed(key)
      } else if (health.notBefore !== undefined && !isHeld(health, now)) {
        const { notBefore: _, ...rest } = health
        change(state, rest, now)
        state.limit ??= 1
        options.freed(key)
      } else if (isHealthy(health) && state.limit === undefined) {
        const { over = 0 } = circuitOf(endpoint.config).rate ?? {}
        const isStored = state.stored === undefined || state.stored === health
        if (isStored && now - state.lastFailure > over) states.delete(key)
      }
    }
  }

  return {
    /** Loads the health that former owners stored. */
    load: (found: ReadonlyArray<StoredHealth>) => {
      for (const { health, key, revision } of found) {
        const endpoint = directory.find(key)
        if (endpoint !== undefined) states.set(key, stateOf(endpoint, { health, revision }))
      }
    },

    /** Returns the number of requests that an endpoint may have in flight now. */
    limit: (key: string): number => {
      const endpoint = directory.find(key)
      if (endpoint === undefined || endpoint.config.disabled !== undefined) return ending
      const most = throttles.limit(endpoint)
      if (endpoint.config.paused !== undefined) {
        paused.add(key)
        return 0
      }
      if (paused.has(key)) return 0
      const state = states.get(key)
      if (state === undefined || !isOf(state, endpoint)) return most
      // `tick` ends the pause, so that waiting deliveries start gradually.
      if (state.health.notBefore !== undefined) return 0
      switch (state.health.circuit.state) {
        case "open":
          return 0
        case "half-open":
          return 1
        case "closed":
          return Math.min(most, state.limit ?? most)
      }
    },

    /** True if the endpoint's circuit is closed. */
    isClosed: (key: string): boolean =>
      (states.get(key)?.health.circuit.state ?? "closed") === "closed",

    /** True if the circuit is open and deliveries are dead-lettered instead of waiting. */
    refuses: (key: string): boolean => {
      const endpoint = directory.find(key)
      const state = states.get(key)
      if (endpoint === undefined || state?.health.circuit.state !== "open") return false
      return isOf(state, endpoint) && circuitOf(endpoint.config).onOpen === "dead-letter"
    },

    /**
     * Counts a request against the endpoint's rate; returns false if the rate does not allow it
     * now.
     */
    admit: (key: string): boolean => {
      const endpoint = directory.find(key)
      if (endpoint?.config.rate === undefined) return true
      return throttles.admit(endpoint, clock.currentTimeMillisUnsafe())
    },

    /** Returns how many requests the endpoint's rate allows within a second. */
    soon: (key: string): number => {
      const endpoint = directory.find(key)
      return endpoint === undefined
        ? Number.POSITIVE_INFINITY
        : throttles.soon(endpoint, clock.currentTimeMillisUnsafe())
    },

    /** Judges an outcome. A success of a healthy endpoint leaves no health state behind. */
    answered: (endpoint: LiveEndpoint, delivery: Delivery, sent: AttemptOutcome): void => {
      const ok = sent.verdict === "delivered"
      // A late failure of a former endpoint of this name says nothing about the current one.
      if (!ok && directory.find(endpoint.key)?.config.generation !== endpoint.config.generation)
        return
      throttles.note(endpoint, sent)
      let state = states.get(endpoint.key)
      if (state === undefined || !isOf(state, endpoint)) {
        if (ok) return
        state = stateOf(endpoint)
        states.set(endpoint.key, state)
      }
      const { at, result, verdict } = sent
      const permanent = verdict === "fail"
      const settings = circuitOf(endpoint.config)
      state.window.note(ok || permanent, at)
      if (!ok) state.lastFailure = at
      const {
        giveUp: why,
        health,
        news
      } = afterOutcome(
        state.health,
        {
          ok,
          permanent,
          at,
          delivery: deliveryId(delivery),
          sentAt: at - result.durationMs,
          ...(result.status === undefined ? {} : { status: result.status }),
          ...(result.error === undefined ? {} : { error: result.error.message }),
          ...retryAt(endpoint, sent)
        },
        settings,
        {
          spread: random.nextDoubleUnsafe(),
          rateExceeded: !ok && state.window.exceeds(settings, at),
          ramping: state.limit !== undefined && isRamping(state.health)
        }
      )
      const { circuit } = health
      if (state.health.notBefore !== undefined && health.notBefore === undefined) state.limit ??= 1
      if (health !== state.health) change(state, health, at)
      for (const kind of news) {
        state.limit = kind === "circuit-closed" ? 1 : undefined
        state.window.clear()
        const opened = { nextAttemptAt: circuit.until ?? at, reason: circuit.why ?? "" }
        tell(endpoint, kind, at, kind === "circuit-opened" ? opened : {})
      }
      if (ok && news.length === 0 && state.limit !== undefined) {
        const { maxInFlight } = endpoint.config
        const next = ramp(state.limit, maxInFlight)
        state.limit = next < maxInFlight ? next : undefined
      }
      if (why !== undefined) giveUp(endpoint, why)
    },

    tick,

    /** Stores pending counts for the next owner. */
    flush: () => {
      const now = clock.currentTimeMillisUnsafe()
      for (const state of states.values()) if (state.health !== state.stored) store(state, now)
    },

    /** Returns the health of an endpoint that is not simply healthy, or undefined. */
    of: (key: string): Health | undefined => states.get(key)?.health,

    /** Number of endpoints whose circuit is not closed. */
    openCircuits: (): number => {
      let open = 0
      for (const { health } of states.values()) if (health.circuit.state !== "closed") open++
      return open
    },

    /** Number of endpoints that are not simply healthy. */
    size: () => states.size,

    /** Number of endpoints with a health record in memory. */
    remembered: () => records.size
  }
})

export type EndpointHealth = Effect.Success<ReturnType<typeof makeEndpointHealth>>
