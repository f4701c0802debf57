import { plainText } from "../../../history/line.ts"
import { spanText } from "../../../history/span.ts"
import type { ActivityView, LastHour } from "../../../operations/endpoints/endpoint-view.ts"
import { countText, percentText, plural } from "../../../operations/text/number-format.ts"
import { moment } from "../../../operations/text/time.ts"
import { tallySince } from "../../../policy/tally.ts"

const waitingText = ({ inFlight, waiting }: ActivityView): string => {
  const { backlog, memory, queue, schedules } = waiting
  const places = [
    `${countText(backlog)} in the backlog`,
    `${countText(queue)} in the queue`,
    schedules === null
      ? "too many schedules to count"
      : `${countText(schedules)} scheduled for a later retry`
  ].join(", ")
  const inMemory = (inFlight ?? 0) + (memory ?? 0)
  return inMemory === 0 ? places : `${places}; those in flight and in line included`
}

const lastHourText = (
  { attempts, delivered, p50Ms, p95Ms, since }: LastHour,
  owner: string,
  now: number
): string => {
  const from =
    since > tallySince(now)
      ? ` since ${moment(since, now)}, when ${plainText(owner)} took its partition`
      : ""
  if (attempts === 0) return `no attempts${from}`
  return `${plural(attempts, "attempt")}${from}: ${percentText(delivered, attempts)} delivered, p50 ${spanText(p50Ms ?? 0)}, p95 ${spanText(p95Ms ?? 0)}`
}

const unknownText = ({ owner, partition }: ActivityView): string =>
  owner === null
    ? `not known: no worker owns partition ${partition} now`
    : `not known: ${plainText(owner)}, which has partition ${partition}, does not answer now`

/** Returns an endpoint's current activity for people, one row per property. */
export const nowRows = (
  activity: ActivityView,
  now: number
): ReadonlyArray<readonly [string, string]> => {
  const { inFlight, lastHour, owner, waiting } = activity
  if (inFlight === null || lastHour === null)
    return [
      ["in flight", unknownText(activity)],
      ["waiting", waitingText(activity)],
      ["last hour", "not known"]
    ]
  const { memory } = waiting
  const line = memory === null || memory === 0 ? "" : `; ${countText(memory)} in line`
  return [
    ["in flight", `${inFlight}${line}`],
    ["waiting", waitingText(activity)],
    ["last hour", lastHourText(lastHour, owner ?? "its owner", now)]
  ]
}

/** The activity columns of the list: deliveries now, and the attempts of the last hour. */
export const nowHeadings = ["in flight", "waiting", "sent/h", "ok", "p50", "p95"]

/** Returns an endpoint's activity in the columns of `nowHeadings`; `-` for unknown values. */
export const nowCells = ({ inFlight, lastHour, waiting }: ActivityView): ReadonlyArray<string> => {
  // Deliveries in flight or in the lane may be stored in the queue or in the backlog, so one sum
  // covers all.
  const sum = waiting.queue + waiting.backlog + (waiting.schedules ?? 0)
  const all = waiting.schedules === null ? `${countText(sum)}+` : countText(sum)
  if (inFlight === null || lastHour === null) return ["-", all, "-", "-", "-", "-"]
  const { attempts, delivered, p50Ms, p95Ms } = lastHour
  if (attempts === 0) return [countText(inFlight), all, "0", "-", "-", "-"]
  return [
    countText(inFlight),
    all,
    countText(attempts),
    percentText(delivered, attempts),
    spanText(p50Ms ?? 0),
    spanText(p95Ms ?? 0)
  ]
}
