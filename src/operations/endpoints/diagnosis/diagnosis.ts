import { Schema } from "effect"
import { ConnectionCheck } from "../../../domain/connection-check.ts"
import { Timestamp } from "../../../domain/timestamp.ts"
import { EndpointName } from "../endpoint-settings.ts"
import { Check } from "./check.ts"
import { connectionChecks } from "./connection-checks.ts"
import { failureChecks, type Way } from "./failure-checks.ts"
import type { Findings } from "./findings.ts"
import { holdChecks, stateChecks } from "./state-checks.ts"
import { subscriptionCheck } from "./subscription-check.ts"

/** What was found out about an endpoint, and what to do. */
export const Diagnosis = Schema.Struct({
  ...EndpointName.fields,
  /** ms since the epoch. */
  at: Timestamp,
  url: Schema.String,
  checks: Schema.Array(Check),
  connection: Schema.optionalKey(ConnectionCheck),
  /** What to do, the most important first. Empty where nothing is wrong. */
  advice: Schema.Array(Schema.String)
})
export type Diagnosis = typeof Diagnosis.Type

const severity = { problem: 0, warning: 1, unknown: 2, ok: 3 } as const

/** Returns the advice of all checks, that about problems first. */
export const adviceOf = (checks: ReadonlyArray<Check>): ReadonlyArray<string> => [
  ...new Set(
    checks
      .toSorted((one, other) => severity[one.result] - severity[other.result])
      .flatMap(({ advice }) => (advice === undefined ? [] : [advice]))
  )
]

const wayOf = ({ connection }: Findings, checks: ReadonlyArray<Check>): Way => {
  if (connection === undefined) return "unknown"
  return checks.some(({ result }) => result === "problem") ? "blocked" : "free"
}

/**
 * Makes all checks, in the order in which an event passes what they are about.
 *
 * @param now ms since the epoch.
 */
export const checksOf = (findings: Findings, now: number): ReadonlyArray<Check> => {
  const connection = connectionChecks(findings, now)
  return [
    subscriptionCheck(findings, now),
    ...stateChecks(findings, now),
    ...connection,
    ...failureChecks(findings, wayOf(findings, connection), now),
    ...holdChecks(findings, now)
  ]
}
