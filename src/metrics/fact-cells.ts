import { firstRound } from "../domain/delivery.ts"
import type { Fact } from "../domain/fact.ts"
import { DeadReason, ErrorClass, goneReason } from "../domain/outcome.ts"
import { isFailedProbe } from "../policy/circuit.ts"
import { CounterCells, HistogramCells } from "./cells.ts"
import type { Family, HistogramFamily, Labels, NumberFamily } from "./family.ts"
import { noLabels } from "./family.ts"

/** What came of an attempt: `failed` has no further one. */
const outcomes = ["delivered", "retry", "failed"] as const
const [delivered, retry, failed] = [0, 1, 2]
/** By hundreds of the status; `none` where no answer came. */
const statusClasses = ["none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"] as const
const otherStatus = statusClasses.length - 1

const errorClasses = ErrorClass.literals
const errorCells: ReadonlyMap<string, number> = new Map(errorClasses.map((name, at) => [name, at]))

/** The reason of an end without a dead letter's reason: on time, or recorded by a former owner. */
const deliveredReasons = ["", "late"] as const
const deadReasons: ReadonlyArray<string> = [...DeadReason.literals, "other"]
const onTime = 0
const late = 1
const deadCells: ReadonlyMap<string, number> = new Map(
  deadReasons.map((name, at) => [name, deliveredReasons.length + at])
)
const otherDead = deliveredReasons.length + deadReasons.length - 1

const circuitStates = ["open", "half-open", "closed"] as const
const givenUp = { to: ["disabled", "suspended"], reason: ["gone", "failing"] } as const

/** Attempts of one delivery, probes included: a delivery may wait for days behind a circuit. */
const attemptBounds = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 25, 50, 100, 250, 1_000]
/** Durations of one attempt, ms. A policy's time-out is at most minutes. */
const attemptMs = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000,
  300_000
]
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
/** From an event to an attempt or success, ms: as soon as it came, or days later. */
const waitMs = [
  ...[5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000],
  ...[minute, 5 * minute, 15 * minute, hour, 3 * hour, 6 * hour, 12 * hour],
  ...[day, 3 * day, 7 * day, 30 * day]
]
const seconds = 0.001

const statusCell = (status: number | undefined): number => {
  if (status === undefined) return 0
  const hundreds = Math.floor(status / 100)
  return hundreds >= 1 && hundreds <= 5 ? hundreds : otherStatus
}

/**
 * What the facts that one worker stored come to, in typed arrays. With a tenant's name, of that
 * tenant only.
 */
export class FactCells {
  readonly #attempts: CounterCells
  readonly #errors: CounterCells
  readonly #ends: CounterCells
  readonly #circuits: CounterCells
  /** Circuits that opened, without those that a failed probe opened again. */
  readonly #trips: CounterCells
  readonly #givenUp: CounterCells
  /** Events routed, events that could not be routed, attempts after the first of their round. */
  readonly #routed: CounterCells
  readonly #unroutable: CounterCells
  readonly #retries: CounterCells
  readonly #deliveryAttempts: readonly [delivered: HistogramCells, dead: HistogramCells]
  readonly #attemptDuration: readonly [delivered: HistogramCells, failed: HistogramCells]
  readonly #deliveryDuration: HistogramCells
  readonly #queueDelay: HistogramCells
  /**
   * True where only what has counted is exported: many tenants use few of the cells. What is rare
   * and of interest at its first time is exported from 0 on: Prometheus sees no increase otherwise.
   */
  readonly #isSparse: boolean

  constructor(tenant?: string) {
    const own: Labels = tenant === undefined ? noLabels : { tenant }
    const each = (labels: ReadonlyArray<Labels>) =>
      new CounterCells(labels.map((more) => ({ ...own, ...more })))
    const histogram = (labels: Labels, bounds: ReadonlyArray<number>, scale?: number) =>
      new HistogramCells({ ...own, ...labels }, bounds, scale)
    this.#isSparse = tenant !== undefined
    this.#attempts = each(
      outcomes.flatMap((outcome) =>
        statusClasses.map((status_class) => ({ outcome, status_class }))
      )
    )
    this.#errors = each(errorClasses.map((error) => ({ error })))
    this.#ends = each([
      ...deliveredReasons.map((reason) => ({ end: "delivered", reason })),
      ...deadReasons.map((reason) => ({ end: "dead-lettered", reason }))
    ])
    this.#circuits = each(circuitStates.map((to) => ({ to })))
    this.#trips = each([noLabels])
    this.#givenUp = each(
      givenUp.to.flatMap((to) => givenUp.reason.map((reason) => ({ to, reason })))
    )
    this.#routed = each([noLabels])
    this.#unroutable = each([noLabels])
    this.#retries = each([noLabels])
    this.#deliveryAttempts = [
      histogram({ end: "delivered" }, attemptBounds),
      histogram({ end: "dead-lettered" }, attemptBounds)
    ]
    this.#attemptDuration = [
      histogram({ outcome: "delivered" }, attemptMs, seconds),
      histogram({ outcome: "failed" }, attemptMs, seconds)
    ]
    this.#deliveryDuration = histogram({}, waitMs, seconds)
    this.#queueDelay = histogram({}, waitMs, seconds)
  }

  /** Counts a fact. No allocation: every delivery takes this path. */
  count(fact: Fact): void {
    switch (fact.kind) {
      case "delivered":
        this.#countSuccess(fact, onTime)
        break
      case "delivered-late":
        this.#countSuccess(fact, late)
        break
      case "attempt-failed":
        this.#countFailure(fact)
        break
      case "routed":
        this.#countPlan(fact)
        break
      case "dead-lettered":
        this.#ends.add(deadCells.get(fact.reason ?? "") ?? otherDead)
        this.#deliveryAttempts[1].observe(fact.attempt ?? 0)
        break
      case "unroutable":
        this.#unroutable.add(0)
        break
      case "circuit-opened":
        this.#circuits.add(0)
        if (!isFailedProbe(fact.reason ?? "")) this.#trips.add(0)
        break
      case "circuit-half-opened":
        this.#circuits.add(1)
        break
      case "circuit-closed":
        this.#circuits.add(2)
        break
      case "endpoint-disabled":
        // The worker decided, and no person.
        if (fact.by === fact.worker) this.#givenUp.add(fact.reason === goneReason ? 0 : 1)
        break
      case "endpoint-suspended":
        this.#givenUp.add(fact.reason === goneReason ? 2 : 3)
        break
    }
  }

  #countSuccess(fact: Fact, end: number): void {
    const { at, attempt = 0, eventAt, plan, round, status } = fact
    this.#attempts.add(delivered * statusClasses.length + statusCell(status))
    this.#ends.add(end)
    this.#deliveryAttempts[0].observe(attempt)
    this.#countAttempt(fact, 0)
    if (plan !== undefined) this.#countPlan(fact)
    // A further round begins long after its event.
    if (round === firstRound && eventAt !== undefined)
      this.#deliveryDuration.observe(Math.max(0, at - eventAt))
  }

  #countFailure(fact: Fact): void {
    const outcome = fact.nextAttemptAt === undefined ? failed : retry
    this.#attempts.add(outcome * statusClasses.length + statusCell(fact.status))
    if (fact.error !== undefined) this.#errors.add(errorCells.get(fact.error.class) ?? 0)
    this.#countAttempt(fact, 1)
  }

  #countAttempt({ at, attempt, durationMs = 0, eventAt, round }: Fact, outcome: 0 | 1): void {
    this.#attemptDuration[outcome].observe(durationMs)
    if (attempt !== 1) this.#retries.add(0)
    else if (round === firstRound && eventAt !== undefined)
      this.#queueDelay.observe(Math.max(0, at - durationMs - eventAt))
  }

  /** An event counts with the first part of its plan. */
  #countPlan({ plan }: Fact): void {
    if (plan === undefined || plan.part === 0) this.#routed.add(0)
  }

  /** Returns its metrics, in the order and with the names of every other one. */
  families(): ReadonlyArray<Family> {
    const numbers = (
      name: string,
      help: string,
      cells: CounterCells,
      isSparse = this.#isSparse
    ): NumberFamily => ({ name, help, type: "counter", samples: cells.samples(isSparse) })
    const histograms = (
      name: string,
      help: string,
      unit: "s" | undefined,
      cells: ReadonlyArray<HistogramCells>
    ): HistogramFamily => ({
      ...{ name, help, unit, type: "histogram" },
      samples: cells.flatMap((one) => one.samples(this.#isSparse))
    })
    return [
      numbers("petrel.events.routed", "Events whose plan is stored.", this.#routed),
      numbers("petrel.events.unroutable", "Events that no plan can be made for.", this.#unroutable),
      numbers("petrel.attempts", "Attempts whose outcome is stored.", this.#attempts),
      numbers("petrel.attempts.retried", "Attempts after the first of a round.", this.#retries),
      numbers("petrel.attempt.errors", "Attempts without a usable answer.", this.#errors),
      numbers("petrel.deliveries.ended", "Rounds of deliveries that ended.", this.#ends, false),
      numbers(
        "petrel.circuit.transitions",
        "Circuits of endpoints, by new state.",
        this.#circuits,
        false
      ),
      numbers(
        "petrel.circuit.trips",
        "Circuits that opened; not those that a failed probe opened again.",
        this.#trips,
        false
      ),
      numbers("petrel.endpoints.disabled", "Endpoints that were given up.", this.#givenUp, false),
      histograms(
        "petrel.delivery.attempts",
        "Attempts of a round when it ended, probes included.",
        undefined,
        this.#deliveryAttempts
      ),
      histograms(
        "petrel.attempt.duration",
        "Duration of an attempt: name, connection, answer.",
        "s",
        this.#attemptDuration
      ),
      histograms(
        "petrel.delivery.duration",
        "From the event to the success of its delivery, without further rounds.",
        "s",
        [this.#deliveryDuration]
      ),
      histograms(
        "petrel.queue.delay",
        "From the event to the beginning of the first attempt.",
        "s",
        [this.#queueDelay]
      )
    ]
  }
}
