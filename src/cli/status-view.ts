import { styleText } from "node:util"
import type { Survey } from "../delivery/introspection/survey.ts"
import { plainText } from "../history/line.ts"
import { spanText } from "../history/span.ts"
import { bytesText } from "../operations/text/bytes.ts"
import { countText, percentText, plural } from "../operations/text/number-format.ts"
import { moment } from "../operations/text/time.ts"
import { tallySince } from "../policy/tally.ts"
import { cutTo, labelled } from "./screen.ts"
import { newsOf, rangesText } from "./status-news.ts"
import { copiesOf, lastHourOf, storedBytes, waitingSums } from "./status-sums.ts"
import { makeTable } from "./table.ts"

export interface ViewOptions {
  readonly colour: boolean
  /** Columns of the screen. (Default: no limit) */
  readonly width: number | undefined
  /** Lines of the screen: limits the number of workers shown. (Default: no limit) */
  readonly height: number | undefined
}

const unknown = "not known: nobody answers for it"

const known = (count: number | undefined, text: (count: number) => string): string =>
  count === undefined ? "?" : text(count)

const brokerText = (survey: Survey): string => {
  const { cluster, version } = survey
  const copies = copiesOf(survey)
  const where = cluster === undefined ? "" : `, cluster ${plainText(cluster)}`
  return `nats-server ${version}${where}, ${copies === 1 ? "1 copy" : `${copies} copies`} of each stream; ${bytesText(storedBytes(survey))} stored`
}

const eventsText = ({ events: { inRouter, pending, stored } }: Survey): string => {
  const behind =
    pending === undefined || inRouter === undefined
      ? "? behind the router"
      : pending + inRouter === 0
        ? "all routed"
        : `${countText(pending)} not routed yet, ${countText(inRouter)} being routed or attempted`
  return `${known(stored, countText)} stored, ${behind}`
}

const filledText = (bytes: number | undefined, limit: number | undefined): string => {
  if (bytes === undefined) return "?"
  return limit === undefined
    ? bytesText(bytes)
    : `${percentText(bytes, limit)} of ${bytesText(limit)}`
}

const roomText = ({ account, dead, room }: Survey): string => {
  const { backlogs, events, history, queues } = room
  const streams = [
    `events ${filledText(events.bytes, events.limit)}`,
    `history ${filledText(history.bytes, history.limit)}`,
    `dead ${filledText(dead.bytes, dead.limit)}`,
    `queues ${filledText(queues, undefined)}`,
    `backlogs ${filledText(backlogs, undefined)}`
  ]
  const whole =
    account === undefined
      ? "?"
      : account.limit === undefined
        ? "unknown, the account has no limit"
        : filledText(account.bytes, account.limit)
  return `${streams.join(", ")}; in all ${whole}`
}

const deliveriesText = (survey: Survey): string => {
  const waiting = waitingSums(survey)
  const { all, answering, backlog, backlogs, fresh, ackPending, inFlight } = waiting
  const { inLine, retries, scheduled } = waiting
  const of = survey.partitions.length
  if (all === 0 && inFlight === 0) return "none waits"
  const places = [
    `${countText(fresh)} new`,
    answering === 0
      ? `${countText(ackPending)} in flight or for a retry`
      : `${countText(retries)} for a retry`,
    `${countText(scheduled)} scheduled for one`,
    backlog === 0 ? "none in a backlog" : `${countText(backlog)} in ${plural(backlogs, "backlog")}`
  ]
  const partly = answering < of ? ` (${answering} of ${of} partitions answer)` : ""
  const now =
    answering === 0
      ? ""
      : `; ${countText(inFlight)} in flight, ${countText(inLine)} in line${partly}`
  return `${countText(all)} wait: ${places.join(", ")}${now}`
}

const oldestText = ({ at, oldest }: Survey): string => {
  if (oldest === undefined) return "nothing waits"
  const { endpoint, place, since, tenant } = oldest
  const where =
    place === "schedule"
      ? "for a later retry"
      : `in ${place === "queue" ? "the queue" : "its backlog"}`
  return `${plainText(`${tenant}/${endpoint}`)} has waited for ${spanText(at - since)}, ${where}`
}

const endpointsText = ({ endpoints }: Survey): string => {
  if (endpoints === undefined) return unknown
  const { closed, disabled, halfOpen, open, paused, total } = endpoints
  return total === 0
    ? "none: `petrel endpoint add` adds one"
    : `${countText(total)}: ${countText(closed)} closed, ${countText(open)} open, ${countText(halfOpen)} half-open, ${countText(paused)} paused, ${countText(disabled)} disabled`
}

const lastHourText = (survey: Survey): string => {
  const hour = lastHourOf(survey)
  if (hour === undefined) return "not known: no worker answers"
  const { attempts, delivered, p50 = 0, p95 = 0, since } = hour
  // An owner that has just taken over a partition starts counting at zero.
  const from =
    since > tallySince(survey.at) ? `, in part only since ${moment(since, survey.at)}` : ""
  return attempts === 0
    ? `no attempts${from}`
    : `${plural(attempts, "attempt")}, ${percentText(delivered, attempts)} delivered, p50 ${spanText(p50)}, p95 ${spanText(p95)}${from}`
}

const deadText = ({ dead: { lastHour, stored } }: Survey): string =>
  `${known(stored, (count) => plural(count, "dead letter"))}, ${known(lastHour, countText)} of the last hour`

const headings = ["worker", "host", "since", "roles", "partitions", "in flight"]

const workerRows = ({
  at,
  partitions,
  workers = []
}: Survey): ReadonlyArray<ReadonlyArray<string>> =>
  workers.map(({ heartbeat, id, partitions: owned }) => {
    const told = partitions.filter(({ owner, told }) => owner === id && told !== undefined)
    const inFlight = told.reduce((sum, { told }) => sum + (told?.inFlight ?? 0), 0)
    return [
      plainText(id),
      plainText(heartbeat?.host ?? "-"),
      heartbeat === undefined ? "-" : moment(heartbeat.startedAt, at),
      heartbeat?.leaving === true ? "stopping" : (heartbeat?.roles.join(",") ?? "gone"),
      rangesText(owned) || "-",
      told.length === owned.length ? countText(inFlight) : "?"
    ]
  })

/** Minimum number of workers shown on a small screen. */
const fewest = 2

/** Returns the state of an installation for people, as lines of a screen. */
export const statusLines = (
  survey: Survey,
  { colour, height, width }: ViewOptions
): ReadonlyArray<string> => {
  const row = (label: string, text: string) => labelled(label.padEnd(12), text, width)
  const painted = (style: "red" | "yellow" | "green", lines: ReadonlyArray<string>) =>
    colour ? lines.map((line) => styleText(style, line, { validateStream: false })) : lines
  const { notices, problems } = newsOf(survey)
  const above = [
    ...row("status", `at ${moment(survey.at, survey.at)}`),
    ...row("broker", brokerText(survey)),
    ...row("room", roomText(survey)),
    ...row("events", eventsText(survey)),
    ...row("deliveries", deliveriesText(survey)),
    ...row("oldest", oldestText(survey)),
    ...row("last hour", lastHourText(survey)),
    ...row("dead", deadText(survey)),
    ...row("endpoints", endpointsText(survey))
  ]
  const below = [
    ...painted(
      "red",
      problems.flatMap(({ text }) => row("problem", text))
    ),
    ...painted(
      "yellow",
      notices.flatMap(({ text }) => row("notice", text))
    ),
    ...(problems.length + notices.length === 0 ? painted("green", row("all is well", "")) : [])
  ]
  const rows = workerRows(survey)
  const room = height === undefined ? rows.length : height - above.length - below.length - 3
  const shown = rows.slice(0, rows.length <= room ? rows.length : Math.max(fewest, room - 1))
  const hidden = rows.length - shown.length
  const workers = [
    ...makeTable(headings)
      .lines(shown)
      .map((line) => cutTo(width, line)),
    ...(hidden === 0 ? [] : [`and ${hidden} more: \`petrel workers\` shows all`])
  ]
  return [...above, "", ...(rows.length === 0 ? [] : [...workers, ""]), ...below]
}
