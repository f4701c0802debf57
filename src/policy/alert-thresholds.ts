import { Duration } from "effect"
import type { AlertChoice, SystemAlertSettings } from "../domain/alert.ts"

const minute = 60_000
const second = 1_000

/**
 * The thresholds of alerts with all defaults filled in; undefined never raises. Times in ms, shares
 * in percent.
 */
export interface AlertThresholds {
  readonly successWarnPercent: number | undefined
  readonly successCriticalPercent: number | undefined
  readonly retriesPercent: number | undefined
  readonly permanentPercent: number | undefined
  readonly attemptsPerDelivery: number | undefined
  readonly medianTime: number | undefined
  readonly p99Time: number | undefined
  readonly deadLetters: number | undefined
  readonly tenantDeadLetters: number | undefined
  readonly sourcesRefusing: number | undefined
  readonly quarantined: number | undefined
  readonly failuresInRow: number | undefined
  readonly circuitOpened: number | undefined
  readonly endpointDisabled: number | undefined
  readonly endpointSuspended: number | undefined
  readonly statusInARow: number | undefined
  readonly unroutedTime: number | undefined
  readonly waitingGrowth: number | undefined
  readonly circuitsOpen: number | undefined
  readonly systemDeadLetters: number | undefined
  readonly outboxTime: number | undefined
  readonly outboxSetAside: number | undefined
  readonly providerLost: number | undefined
  readonly deliveriesMissing: number | undefined
  readonly diskFailed: number | undefined
  readonly window: number
  readonly samples: number
}

export const defaultThresholds: AlertThresholds = {
  successWarnPercent: 99,
  successCriticalPercent: 95,
  retriesPercent: 10,
  permanentPercent: 1,
  attemptsPerDelivery: 2,
  medianTime: 5 * second,
  p99Time: 5 * minute,
  deadLetters: 1,
  tenantDeadLetters: 100,
  sourcesRefusing: 1,
  quarantined: 1,
  failuresInRow: 20,
  circuitOpened: 1,
  endpointDisabled: 1,
  endpointSuspended: 1,
  statusInARow: 1,
  unroutedTime: 5 * minute,
  waitingGrowth: 1_000,
  circuitsOpen: 10,
  systemDeadLetters: 1_000,
  outboxTime: minute,
  outboxSetAside: 1,
  providerLost: 1,
  deliveriesMissing: 1,
  diskFailed: 1,
  window: 10 * minute,
  samples: 20
}

const allOff: AlertThresholds = {
  ...defaultThresholds,
  successWarnPercent: undefined,
  successCriticalPercent: undefined,
  retriesPercent: undefined,
  permanentPercent: undefined,
  attemptsPerDelivery: undefined,
  medianTime: undefined,
  p99Time: undefined,
  deadLetters: undefined,
  tenantDeadLetters: undefined,
  sourcesRefusing: undefined,
  quarantined: undefined,
  failuresInRow: undefined,
  circuitOpened: undefined,
  endpointDisabled: undefined,
  endpointSuspended: undefined,
  statusInARow: undefined,
  unroutedTime: undefined,
  waitingGrowth: undefined,
  circuitsOpen: undefined,
  systemDeadLetters: undefined,
  outboxTime: undefined,
  outboxSetAside: undefined,
  providerLost: undefined,
  deliveriesMissing: undefined,
  diskFailed: undefined
}

const numberOf = (value: number | string | Duration.Duration): number | undefined => {
  if (value === "off") return undefined
  if (value === "on") return 1
  if (typeof value === "number") return value
  return typeof value === "string" ? undefined : Duration.toMillis(value)
}

/**
 * Returns the thresholds with settings of a lower level applied.
 *
 * @param choice `off` removes all thresholds; undefined changes nothing.
 */
export const withSettings = (
  under: AlertThresholds,
  choice: AlertChoice | SystemAlertSettings | undefined
): AlertThresholds => {
  if (choice === undefined) return under
  if (choice === "off") return { ...allOff, window: under.window, samples: under.samples }
  const given = Object.fromEntries(
    Object.entries(choice).map(([name, value]) => [name, numberOf(value)])
  )
  return { ...under, ...given }
}
