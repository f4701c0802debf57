import {
  type AlertReading,
  above,
  below,
  judged,
  reaching,
  stateReading,
  withoutGood
} from "./alert-reading.ts"
import type { AlertThresholds } from "./alert-thresholds.ts"
import type { AlertCounts } from "./alert-window.ts"
import { quantile, stepOf } from "./durations.ts"
import type { AnswersInARow } from "./status-limit.ts"
import { rowReadings } from "./status-limit.ts"

const percentOf = (part: number, whole: number): number | undefined =>
  whole === 0 ? undefined : (100 * part) / whole

/**
 * Returns the readings of the share of successful deliveries, for an endpoint or a tenant.
 * Deliveries whose first attempt failed count as failures before they have ended, since deliveries
 * to an endpoint that is down do not end for a long time.
 *
 * @param isOpen true while a circuit is not closed: what waits behind it is not attempted, so that
 *   nothing bad in a window does not mean that it is over.
 */
export const successReadings = (
  { dead, delivered, pending }: Pick<AlertCounts, "dead" | "delivered" | "pending">,
  isOpen: boolean,
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
  const readings = [
    judged({ ...common, name: "success-low", level: "warn", threshold: successWarnPercent }),
    judged({
      ...common,
      name: "success-critical",
      level: "critical",
      threshold: successCriticalPercent
    })
  ]
  return isOpen ? readings.map((reading) => ({ ...reading, quiet: false })) : readings
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
    ...successReadings(counts, availability.isOpen, thresholds),
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

/** What became of a tenant's deliveries, and the number of its endpoints whose circuit is open. */
interface TenantTrouble extends Pick<AlertCounts, "dead" | "delivered" | "pending"> {
  readonly openCircuits: number
}

/** Returns the readings of a tenant, of the counts of all its endpoints. */
export const tenantReadings = (
  counts: TenantTrouble,
  thresholds: AlertThresholds
): ReadonlyArray<AlertReading> => [
  ...successReadings(counts, counts.openCircuits > 0, thresholds),
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
