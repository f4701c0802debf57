import { type AlertReading, judged, reaching, stateReading, withoutGood } from "./alert-reading.ts"
import type { AlertThresholds } from "./alert-thresholds.ts"
import type { WaitingGrowth } from "./alert-window.ts"

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
