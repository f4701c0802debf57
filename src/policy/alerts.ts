import type { AlertName } from "../domain/alert.ts"
import { type AlertReading, above, below, judged, reaching } from "./alert-reading.ts"
import type { AlertThresholds } from "./alert-thresholds.ts"
import type { AlertCounts, WaitingGrowth } from "./alert-window.ts"
import { quantile, stepOf } from "./durations.ts"
import type { AnswersInARow } from "./status-limit.ts"
import { rowReadings } from "./status-limit.ts"

const percentOf = (part: number, whole: number): number | undefined =>
  whole === 0 ? undefined : (100 * part) / whole

/**
 * Returns the readings of the share of successful deliveries, for an endpoint or a tenant.
 * Deliveries whose first attempt failed count as failures before they have ended, since deliveries
 * to an endpoint that is down do not end for a long time.
 */
export const successReadings = (
  { dead, delivered, pending }: Pick<AlertCounts, "dead" | "delivered" | "pending">,
  { samples: least, successCriticalPercent, successWarnPercent }: AlertThresholds
): ReadonlyArray<AlertReading> => {
  const samples = delivered + dead + pending
  const common = {
    value: percentOf(delivered, samples),
    samples,
    least,
    unit: "percent",
    ...below
  }
  return [
    judged({ ...common, name: "success-low", level: "warn", threshold: successWarnPercent }),
    judged({
      ...common,
      name: "success-critical",
      level: "critical",
      threshold: successCriticalPercent
    })
  ]
}

/** An endpoint's state, in addition to its counts. */
export interface EndpointAvailability {
  readonly isOpen: boolean
  /** How long its circuit is known to have been closed, ms. */
  readonly closedFor: number
  readonly isDisabled: boolean
  readonly isSuspended: boolean
  /** The last answers; `unknown` to an owner that has seen none. */
  readonly inARow: AnswersInARow | "none" | "unknown"
  /** Failed attempts since the last success; undefined to an owner that has seen no attempt. */
  readonly failuresInRow: number | undefined
}

const stateReading = (
  name: AlertName,
  level: AlertReading["level"],
  threshold: number | undefined,
  is: { readonly bad: boolean; readonly good: boolean },
  unit: string
): AlertReading => {
  const said = { name, level, unit, value: is.bad ? 1 : 0, threshold: threshold ?? 0 }
  if (threshold === undefined) return { ...said, state: "off", quiet: true }
  // A state is known at once, even to an owner that has just started: `quiet` is not needed to
  // clear it.
  return { ...said, state: is.bad ? "bad" : is.good ? "good" : "between", quiet: false }
}

/**
 * Returns true if no reading can be bad: every first attempt succeeded quickly. This is the case
 * for most endpoints, and takes a tenth of the time of all readings.
 */
export const isSimplyWell = (
  { attempts, dead, delivered, pending, refused, retried, times }: AlertCounts,
  { failuresInRow = 0, inARow, isDisabled, isOpen, isSuspended }: EndpointAvailability,
  { medianTime = Number.POSITIVE_INFINITY, p99Time = Number.POSITIVE_INFINITY }: AlertThresholds
): boolean =>
  !isOpen &&
  !isDisabled &&
  !isSuspended &&
  typeof inARow === "string" &&
  failuresInRow === 0 &&
  dead + pending + refused + retried === 0 &&
  attempts === delivered &&
  times.length <= stepOf(Math.min(medianTime, p99Time))

const availabilityReadings = (
  { closedFor, failuresInRow, inARow, isDisabled, isOpen, isSuspended }: EndpointAvailability,
  thresholds: AlertThresholds
): ReadonlyArray<AlertReading> => [
  stateReading(
    "circuit-opened",
    "warn",
    thresholds.circuitOpened,
    { bad: isOpen, good: closedFor >= thresholds.window },
    "circuits"
  ),
  stateReading(
    "endpoint-disabled",
    "critical",
    thresholds.endpointDisabled,
    { bad: isDisabled, good: !isDisabled },
    "endpoints"
  ),
  stateReading(
    "endpoint-suspended",
    "critical",
    thresholds.endpointSuspended,
    { bad: isSuspended, good: !isSuspended },
    "endpoints"
  ),
  ...rowReadings(inARow, thresholds.statusInARow !== undefined),
  failuresReading(failuresInRow, isOpen, thresholds.failuresInRow)
]

/** Returns all readings of an endpoint. */
export const endpointReadings = (
  counts: AlertCounts,
  availability: EndpointAvailability,
  thresholds: AlertThresholds
): ReadonlyArray<AlertReading> => {
  const { attempts, dead, delivered, refused, retried, times, tried } = counts
  const { samples: least } = thresholds
  const taken = (share: number) => quantile(times, share)
  const warn = { level: "warn", least } as const
  return [
    ...availabilityReadings(availability, thresholds),
    // A count of 0 is not good: dead letters counted by the previous owner are unknown.
    withoutGood(
      judged({
        ...reaching,
        name: "dead-letters",
        level: "warn",
        unit: "dead letters",
        threshold: thresholds.deadLetters,
        value: dead,
        samples: 1,
        least: 1
      })
    ),
    ...successReadings(counts, thresholds),
    judged({
      ...warn,
      ...above,
      name: "retries-high",
      unit: "percent",
      threshold: thresholds.retriesPercent,
      value: percentOf(retried, tried),
      samples: tried
    }),
    judged({
      ...warn,
      ...above,
      name: "permanent-high",
      unit: "percent",
      threshold: thresholds.permanentPercent,
      value: percentOf(refused, delivered + refused),
      samples: delivered + refused
    }),
    judged({
      ...warn,
      isBad: above.isBad,
      // The minimum is one attempt.
      isGood: (value, threshold) => value <= 1 + (threshold - 1) / 2,
      name: "attempts-high",
      unit: "attempts per delivery",
      threshold: thresholds.attemptsPerDelivery,
      value: delivered === 0 ? undefined : attempts / delivered,
      samples: delivered
    }),
    judged({
      ...warn,
      ...above,
      name: "median-slow",
      unit: "ms",
      threshold: thresholds.medianTime,
      value: taken(0.5),
      samples: delivered
    }),
    judged({
      ...warn,
      ...above,
      name: "p99-slow",
      unit: "ms",
      threshold: thresholds.p99Time,
      value: taken(0.99),
      samples: delivered
    })
  ]
}

/**
 * An open circuit has an alert of its own, so this one is neither raised nor cleared meanwhile. Only
 * a success clears it, however long that takes: retries may be hours apart.
 */
const failuresReading = (
  value: number | undefined,
  isOpen: boolean,
  threshold: number | undefined
): AlertReading => {
  const reading = judged({
    ...reaching,
    name: "failures-in-row",
    level: "warn",
    unit: "failures",
    threshold,
    value,
    samples: 1,
    least: 1
  })
  if (reading.state === "bad" && isOpen) return { ...reading, state: "between", quiet: false }
  return { ...reading, quiet: false }
}

/** Returns the readings of a tenant, of the counts of all its endpoints. */
export const tenantReadings = (
  counts: Pick<AlertCounts, "dead" | "delivered" | "pending">,
  thresholds: AlertThresholds
): ReadonlyArray<AlertReading> => [
  ...successReadings(counts, thresholds),
  // A count of 0 is not good: dead letters counted by a previous owner are unknown.
  withoutGood(
    judged({
      ...reaching,
      name: "tenant-dead-letters",
      level: "warn",
      unit: "dead letters",
      threshold: thresholds.tenantDeadLetters,
      value: counts.dead,
      samples: 1,
      least: 1
    })
  )
]

/** What comes in for a tenant, and is no event. */
export interface IncomingTrouble {
  /** Sources that refuse all that comes. */
  readonly refusing: number
  /** Requests in quarantine; undefined if unknown. */
  readonly quarantined: number | undefined
  /** Events that had not come in when sources were last reconciled, where more than may be. */
  readonly lost: number
}

/** Returns the readings of what comes in for a tenant. Each is a group of its own. */
export const incomingReadings = (
  { lost, quarantined, refusing }: IncomingTrouble,
  thresholds: AlertThresholds
): ReadonlyArray<AlertReading> => [
  judged({
    ...reaching,
    name: "source-refusing",
    level: "warn",
    unit: "sources",
    threshold: thresholds.sourcesRefusing,
    value: refusing,
    samples: 1,
    least: 1
  }),
  judged({
    ...reaching,
    name: "provider-lost",
    level: "warn",
    unit: "events",
    threshold: thresholds.providerLost,
    value: lost,
    samples: 1,
    least: 1
  }),
  {
    ...judged({
      ...reaching,
      name: "quarantined",
      level: "warn",
      unit: "requests",
      threshold: thresholds.quarantined,
      value: quarantined,
      samples: 1,
      least: 1
    }),
    // What is not known clears nothing, however long that lasts.
    ...(quarantined === undefined ? { quiet: false } : {})
  }
]

const withoutGood = (reading: AlertReading): AlertReading =>
  reading.state === "good" ? { ...reading, state: "between" } : reading

/** The state of the system. */
export interface SystemState {
  /**
   * Growth of the number of waiting deliveries within the window; undefined if it was not watched
   * for that long.
   */
  readonly growth: WaitingGrowth | undefined
  readonly circuitsOpen: number
  /** How long the oldest event has waited to be routed, ms; undefined if unknown. */
  readonly unroutedMs: number | undefined
  /** Dead letters of all tenants, each within its own window. */
  readonly deadLetters: number
  /** Whether an audit found missing deliveries within the last day. */
  readonly isMissing: boolean
  /** Streams in which the broker stores nothing more. */
  readonly failing: number
  /** How long the outbox is stuck that is so for longest, ms; 0 if none is. */
  readonly outboxMs: number
  /** Rows of all outboxes that are set aside. */
  readonly outboxSetAside: number
}

/** Returns all readings of the system. */
export const systemReadings = (
  state: SystemState,
  thresholds: AlertThresholds
): ReadonlyArray<AlertReading> => [
  ...deliveringReadings(state, thresholds),
  ...outboxReadings(state, thresholds)
]

const outboxReadings = (
  { outboxMs, outboxSetAside }: SystemState,
  { outboxSetAside: mostSetAside, outboxTime }: AlertThresholds
): ReadonlyArray<AlertReading> => [
  judged({
    name: "outbox-stuck",
    level: "critical",
    unit: "ms",
    threshold: outboxTime,
    value: outboxMs,
    samples: 1,
    least: 1,
    isBad: reaching.isBad,
    isGood: (value, threshold) => value <= threshold / 2
  }),
  judged({
    ...reaching,
    name: "outbox-set-aside",
    level: "warn",
    unit: "rows",
    threshold: mostSetAside,
    value: outboxSetAside,
    samples: 1,
    least: 1
  })
]

const deliveringReadings = (
  { circuitsOpen, deadLetters, failing, growth, isMissing, unroutedMs }: SystemState,
  thresholds: AlertThresholds
): ReadonlyArray<AlertReading> => [
  judged({
    name: "events-unrouted",
    level: "critical",
    unit: "ms",
    threshold: thresholds.unroutedTime,
    value: unroutedMs,
    samples: unroutedMs === undefined ? 0 : 1,
    least: 1,
    isBad: reaching.isBad,
    isGood: (value, threshold) => value <= threshold / 2
  }),
  judged({
    name: "waiting-growing",
    level: "warn",
    unit: "deliveries",
    threshold: thresholds.waitingGrowth,
    value: growth?.by,
    samples: growth === undefined ? 0 : 1,
    least: 1,
    isBad: (value, threshold) => growth?.goesOn === true && value >= threshold,
    isGood: (value) => value <= 0
  }),
  judged({
    name: "circuits-open",
    level: "critical",
    unit: "circuits",
    threshold: thresholds.circuitsOpen,
    value: circuitsOpen,
    samples: 1,
    least: 1,
    isBad: reaching.isBad,
    isGood: (value, threshold) => value <= threshold / 2
  }),
  withoutGood(
    judged({
      ...reaching,
      name: "system-dead-letters",
      level: "critical",
      unit: "dead letters",
      threshold: thresholds.systemDeadLetters,
      value: deadLetters,
      samples: 1,
      least: 1
    })
  ),
  stateReading(
    "deliveries-missing",
    "critical",
    thresholds.deliveriesMissing,
    { bad: isMissing, good: !isMissing },
    "audits"
  ),
  {
    ...stateReading(
      "disk-failed",
      "critical",
      thresholds.diskFailed,
      { bad: failing > 0, good: failing === 0 },
      "streams"
    ),
    value: failing
  }
]
