import type { Delivery, Progress } from "../domain/delivery.ts"
import { deliveryId } from "../domain/delivery.ts"
import { circuitOf } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import { healthy, isHealthy } from "../domain/health.ts"
import type { AttemptOutcome } from "../domain/outcome.ts"
import type { Consequence } from "../policy/circuit.ts"
import {
  afterOutcome,
  cooledDown,
  isProbe,
  isRamping,
  RateWindow,
  ramp,
  withoutFailures
} from "../policy/circuit.ts"
import { parseRetryAfter } from "../policy/retry-after.ts"
import type { SpreadTimes } from "../policy/spread-times.ts"
import { timers } from "../time/timers.ts"
import type { LiveEndpoint } from "./directory.ts"
import type { HealthRecord } from "./health-store.ts"
import type { PreparedPolicy } from "./live-endpoint.ts"

/** Minimum time between stores of a change in counts only, ms. */
const countingPauseMs = 5_000
/**
 * How long after its cool-down a circuit is certainly half-open, ms. A delivery that came for its
 * probe before would be moved to the backlog.
 */
const halfOpenSlackMs = 250

/** The transitions that follow from an outcome, and what the delivery's facts are told. */
interface JudgedOutcome extends Omit<Consequence, "health"> {
  readonly probe: AttemptOutcome["probe"]
}

/**
 * When the receiver's Retry-After, capped by the policy of the delivery, allows the next request, ms
 * since the epoch.
 */
const retryAt = ({ retryAfterCap }: PreparedPolicy, { at, result, verdict }: AttemptOutcome) => {
  const wait = verdict === "retry" ? parseRetryAfter(result.retryAfter, at) : undefined
  return wait === undefined ? {} : { retryAt: at + Math.min(wait, retryAfterCap) }
}

/** When time alone changes what the endpoint may take, ms since the epoch; Infinity for never. */
const changesAt = ({ circuit, notBefore }: Health): number =>
  notBefore ?? (circuit.state === "open" ? (circuit.until ?? 0) : Number.POSITIVE_INFINITY)

/**
 * Returns the health of an endpoint that takes nothing and is tried again at the next time that is
 * free for its tenant; the same object if that is when it would be, or if it takes something.
 *
 * @param now ms since the epoch. What was due before is due now.
 */
export const spreadOver = (
  times: SpreadTimes,
  tenant: string,
  health: Health,
  now: number
): Health => {
  const due = Math.max(changesAt(health), now)
  if (due === Number.POSITIVE_INFINITY) return health
  const at = times.book(tenant, due, now)
  if (at === due) return health
  return health.notBefore === undefined
    ? { ...health, circuit: { ...health.circuit, until: at } }
    : { ...health, notBefore: at }
}

/** The state of an endpoint that failed lately or is recovering, and what of it is stored. */
export class HealthState {
  health: Health
  /** Concurrency limit while the endpoint recovers; undefined once it has. */
  limit: number | undefined
  readonly record: HealthRecord
  /** The revision of the endpoint's configuration at the last revision of its health, paused or not. */
  revisedFor: number | undefined
  readonly #write: (state: HealthState, health: Health | undefined) => void
  readonly #times: SpreadTimes
  readonly #window = new RateWindow()
  /** Ms of the monotonic clock, like `#storedAt`. */
  #lastFailure = Number.NEGATIVE_INFINITY
  /** The health that was last written to the bucket, and when. */
  #stored: Health | undefined
  #storedAt = Number.NEGATIVE_INFINITY
  /** The revision of the endpoint's configuration that was last seen while it was not held back. */
  #revision: number
  #changesAt: number

  /**
   * @param found the health that a former owner stored.
   * @param times when endpoints are tried again.
   * @param write stores health where this worker is owner; undefined for none.
   */
  constructor(
    { config, revision }: LiveEndpoint,
    record: HealthRecord,
    found: Health | undefined,
    times: SpreadTimes,
    write: (state: HealthState, health: Health | undefined) => void
  ) {
    this.health = found ?? healthy(config.generation)
    this.#changesAt = changesAt(this.health)
    this.limit = found !== undefined && isRamping(found) ? 1 : undefined
    this.record = record
    this.#times = times
    this.#write = write
    this.#stored = found
    this.#revision = revision
  }

  isOf(generation: string): boolean {
    return this.health.generation === generation
  }

  /** True where time alone has changed what the endpoint may take, or what has to be stored. */
  isDue(now: number): boolean {
    return this.#changesAt <= now || this.#isStoreDue
  }

  /**
   * Lets the circuit be probed at once where the endpoint's configuration has changed: somebody may
   * have mended it, and its failures say nothing of what holds now.
   */
  noteRevision({ revision }: LiveEndpoint, now: number): void {
    if (revision === this.#revision) return
    this.#revision = revision
    this.change(cooledDown(this.health, now))
  }

  /** True where nothing of the endpoint's failures is worth keeping any more. */
  get isOver(): boolean {
    return isHealthy(this.health) && this.limit === undefined
  }

  /** True where the last failure is further back than `ms`, and its health is stored. */
  hasRested(ms: number): boolean {
    const isStored = this.#stored === undefined || this.#stored === this.health
    return isStored && timers.monotonicMs() - this.#lastFailure > ms
  }

  /**
   * Judges the outcome of an attempt.
   *
   * @param progress of the delivery before the attempt.
   * @param spread a random number in [0, 1).
   */
  judge(
    { config, policyFor }: LiveEndpoint,
    delivery: Delivery,
    sent: AttemptOutcome,
    { lastAttemptAt }: Pick<Progress, "lastAttemptAt">,
    spread: number
  ): JudgedOutcome {
    const { at, result, verdict } = sent
    const ok = verdict === "delivered"
    const permanent = verdict === "fail"
    const settings = circuitOf(config)
    const sentAt = at - result.durationMs
    const wasProbe = isProbe(this.health, { at, sentAt }, lastAttemptAt)
    this.#window.note(ok || permanent, at)
    if (!ok) this.#lastFailure = timers.monotonicMs()
    const { health: judged, ...consequence } = afterOutcome(
      this.health,
      {
        ...{ ok, permanent, at, sentAt, delivery: deliveryId(delivery) },
        ...(result.status === undefined ? {} : { status: result.status }),
        ...(result.error === undefined ? {} : { error: result.error.message }),
        ...retryAt(policyFor(delivery.type), sent)
      },
      settings,
      {
        spread,
        rateExceeded: !ok && this.#window.exceeds(settings, at),
        ramping: this.limit !== undefined && isRamping(this.health)
      }
    )
    const wasTaking = changesAt(this.health) === Number.POSITIVE_INFINITY
    const health = wasTaking ? spreadOver(this.#times, delivery.tenant, judged, at) : judged
    if (this.health.notBefore !== undefined && health.notBefore === undefined) this.limit ??= 1
    if (health !== this.health) this.change(health)
    this.#recover(consequence.transitions, ok, config.maxInFlight)
    const { until } = health.circuit
    const nextAt = until === undefined ? at : until + halfOpenSlackMs
    return { ...consequence, probe: wasProbe ? { nextAt } : undefined }
  }

  /** Begins, raises or ends the limit under which the endpoint recovers. */
  #recover(transitions: Consequence["transitions"], ok: boolean, maxInFlight: number): void {
    for (const kind of transitions) {
      this.limit = kind === "circuit-closed" ? 1 : undefined
      this.#window.clear()
    }
    if (!ok || transitions.length > 0 || this.limit === undefined) return
    const next = ramp(this.limit, maxInFlight)
    this.limit = next < maxInFlight ? next : undefined
  }

  /** Forgets the failures of a suspended endpoint. A Retry-After that holds is kept. */
  forgetFailures(): void {
    this.#window.clear()
    const health = withoutFailures(this.health)
    if (health !== this.health) this.change(health)
  }

  /**
   * Changes health. A change of the circuit, `failingSince` or `notBefore` is stored at once; a
   * change in counts only, once it is due.
   */
  change(health: Health): void {
    const { circuit, failingSince, notBefore } = this.health
    this.health = health
    this.#changesAt = changesAt(health)
    const decides =
      health.circuit !== circuit ||
      health.failingSince !== failingSince ||
      health.notBefore !== notBefore
    if (decides) this.#store()
  }

  /** Stores counts that have changed, where that is due. */
  storeIfDue(): void {
    if (this.#isStoreDue) this.#store()
  }

  get #isStoreDue(): boolean {
    return this.health !== this.#stored && timers.monotonicMs() - this.#storedAt >= countingPauseMs
  }

  /** Stores what is not stored yet. */
  flush(): void {
    if (this.health !== this.#stored) this.#store()
  }

  /** Notes that the health was given to the bucket. */
  noteStored(): void {
    this.#storedAt = timers.monotonicMs()
    this.#stored = this.health
  }

  #store(): void {
    this.#write(this, isHealthy(this.health) ? undefined : this.health)
  }
}
