import type { EndpointNow, Told } from "../delivery/introspection/endpoint-activity.ts"
import { plainText } from "../history/line.ts"
import { spanText } from "../history/span.ts"
import { tallySince } from "../policy/tally.ts"
import { moment } from "./endpoint-health.ts"
import { countText, percentText, plural, shareOf } from "./number-format.ts"

const lastHourJson = ({ attempts, delivered, p50Ms, p95Ms, since }: Told): object => ({
  since,
  attempts,
  delivered,
  successRate: shareOf(delivered, attempts),
  p50Ms: p50Ms ?? null,
  p95Ms: p95Ms ?? null
})

/**
 * Returns an endpoint's current activity as JSON. Values that only the partition's owner knows are
 * null if no owner answers.
 */
export const nowJson = ({ owner, partition, told, waiting }: EndpointNow): object => ({
  partition,
  owner: owner ?? null,
  inFlight: told?.inFlight ?? null,
  waiting: {
    memory: told?.inLine ?? null,
    queue: waiting.queue,
    schedules: waiting.schedules ?? null,
    backlog: waiting.backlog
  },
  lastHour: told === undefined ? null : lastHourJson(told)
})

const waitingText = ({ told, waiting: { backlog, queue, schedules } }: EndpointNow): string => {
  const places = [
    `${countText(backlog)} in the backlog`,
    `${countText(queue)} in the queue`,
    schedules === undefined
      ? "too many schedules to count"
      : `${countText(schedules)} scheduled for a later retry`
  ].join(", ")
  const inMemory = (told?.inFlight ?? 0) + (told?.inLine ?? 0)
  return inMemory === 0 ? places : `${places}; those in flight and in line included`
}

const lastHourText = (
  { attempts, delivered, p50Ms = 0, p95Ms = 0, since }: Told,
  owner: string,
  now: number
): string => {
  const from =
    since > tallySince(now)
      ? ` since ${moment(since, now)}, when ${plainText(owner)} took its partition`
      : ""
  if (attempts === 0) return `no attempts${from}`
  return `${plural(attempts, "attempt")}${from}: ${percentText(delivered, attempts)} delivered, p50 ${spanText(p50Ms)}, p95 ${spanText(p95Ms)}`
}

const unknownText = ({ owner, partition }: EndpointNow): string =>
  owner === undefined
    ? `not known: no worker owns partition ${partition} now`
    : `not known: ${plainText(owner)}, which has partition ${partition}, does not answer now`

/** Returns an endpoint's current activity for people, one row per property. */
export const nowRows = (now: EndpointNow, at: number): ReadonlyArray<readonly [string, string]> => {
  const { owner = "its owner", told } = now
  if (told === undefined)
    return [
      ["in flight", unknownText(now)],
      ["waiting", waitingText(now)],
      ["last hour", "not known"]
    ]
  const line = told.inLine === 0 ? "" : `; ${countText(told.inLine)} in line`
  return [
    ["in flight", `${told.inFlight}${line}`],
    ["waiting", waitingText(now)],
    ["last hour", lastHourText(told, owner, at)]
  ]
}

/** The activity columns of the list: deliveries now, and the attempts of the last hour. */
export const nowHeadings = ["in flight", "waiting", "sent/h", "ok", "p50", "p95"]

/** Returns an endpoint's activity in the columns of `nowHeadings`; `-` for unknown values. */
export const nowCells = (now: EndpointNow | undefined): ReadonlyArray<string> => {
  if (now === undefined) return nowHeadings.map(() => "-")
  const { told, waiting } = now
  // Deliveries in flight or in the lane may be stored in the queue or in the backlog, so one sum
  // covers all.
  const sum = waiting.queue + waiting.backlog + (waiting.schedules ?? 0)
  const all = waiting.schedules === undefined ? `${countText(sum)}+` : countText(sum)
  if (told === undefined) return ["-", all, "-", "-", "-", "-"]
  const { attempts, delivered, inFlight, p50Ms = 0, p95Ms = 0 } = told
  if (attempts === 0) return [countText(inFlight), all, "0", "-", "-", "-"]
  return [
    countText(inFlight),
    all,
    countText(attempts),
    percentText(delivered, attempts),
    spanText(p50Ms),
    spanText(p95Ms)
  ]
}
