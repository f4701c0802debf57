import type { AlertName } from "../domain/alert.ts"
import type { AlertReading } from "./alert-reading.ts"

/** Answers of an endpoint in a row that one rule of a policy's `statuses` holds for. */
export interface AnswersInARow {
  /** The status or class that the rule names. */
  readonly status: string
  readonly count: number
  /** The number that raises an alert; undefined if none does. */
  readonly alert: number | undefined
}

const names = ["endpoint-not-found", "status-repeated"] as const

/** Returns the name of the alert about answers of a status in a row. */
const nameFor = (status: string): AlertName =>
  status === "404" ? "endpoint-not-found" : "status-repeated"

/**
 * Returns the readings of the answers in a row. An alert is raised at the rule's number, and cleared
 * by any other answer, however long that takes: retries of such an answer may be hours apart.
 *
 * @param inARow `none` if the last answer has no rule, `unknown` to an owner that has seen none.
 * @param isOn false if nobody wants these alerts.
 */
export const rowReadings = (
  inARow: AnswersInARow | "none" | "unknown",
  isOn: boolean
): ReadonlyArray<AlertReading> =>
  names.map((name) => {
    const row = typeof inARow === "object" && nameFor(inARow.status) === name ? inARow : undefined
    const alert = row?.alert
    return {
      ...{ name, level: "warn", unit: "answers", threshold: alert ?? 0, quiet: false },
      ...(row === undefined ? {} : { value: row.count, status: row.status }),
      state: !isOn
        ? "off"
        : inARow === "unknown"
          ? "between"
          : row === undefined || alert === undefined
            ? "good"
            : row.count >= alert
              ? "bad"
              : "between"
    }
  })
