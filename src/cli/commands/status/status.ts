import { styleText } from "node:util"
import { Clock, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { jsonOf, timeText } from "../../../domain/timestamp.ts"
import type { IncomingState, OutboxView } from "../../../operations/status/incoming.ts"
import { readStatusAndDisk, Status } from "../../../operations/status/status-report.ts"
import { tallySince } from "../../../policy/tally.ts"
import { plainText } from "../../../text/plain-text.ts"
import {
  bytesText,
  countText,
  localTime,
  percentText,
  plural,
  rangesText,
  spanText
} from "../../../text/quantities.ts"
import { isSet } from "../../flags/shared.ts"
import { cutTo, labelled, makeTable, screenHeight, screenWidth } from "../../format/screen.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, connectedToServe, petrel } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { clearScreen, coloured, print, redraw } from "../../terminal/stdout.ts"

interface ViewOptions {
  readonly colour: boolean
  /** Columns of the screen. (Default: no limit) */
  readonly width: number | undefined
  /** Lines of the screen: limits the number of workers shown. (Default: no limit) */
  readonly height: number | undefined
}

const known = (count: number | null, text: (count: number) => string): string =>
  count === null ? "?" : text(count)

const brokerText = ({ broker }: Status): string => {
  const { cluster, replicas, storedBytes, version } = broker
  const where = cluster === null ? "" : `, cluster ${plainText(cluster)}`
  return `nats-server ${version}${where}, ${replicas === 1 ? "1 copy" : `${replicas} copies`} of each stream; ${bytesText(storedBytes)} stored`
}

const eventsText = ({ events: { inRouter, stored, waitingForRouter } }: Status): string => {
  const behind =
    waitingForRouter === null || inRouter === null
      ? "? behind the router"
      : waitingForRouter + inRouter === 0
        ? "all routed"
        : `${countText(waitingForRouter)} not routed yet, ${countText(inRouter)} being routed or attempted`
  return `${known(stored, countText)} stored, ${behind}`
}

const filledText = (bytes: number | null, limit: number | null): string => {
  if (bytes === null) return "?"
  return limit === null ? bytesText(bytes) : `${percentText(bytes, limit)} of ${bytesText(limit)}`
}

const spaceText = ({ room }: Status): string => {
  const { account, backlogs, deadLetters, events, history, queues } = room
  const streams = [
    `events ${filledText(events.bytes, events.limitBytes)}`,
    `history ${filledText(history.bytes, history.limitBytes)}`,
    `dead ${filledText(deadLetters.bytes, deadLetters.limitBytes)}`,
    `queues ${filledText(queues.bytes, null)}`,
    `backlogs ${filledText(backlogs.bytes, null)}`
  ]
  const whole =
    account.bytes !== null && account.limitBytes === null
      ? "unknown, the account has no limit"
      : filledText(account.bytes, account.limitBytes)
  return `${streams.join(", ")}; in total ${whole}`
}

/** Says of how many partitions it is not known what waits there; undefined where all are counted. */
const uncountedText = ({ partitions }: Status): string | undefined => {
  const uncounted = partitions.filter(
    (one) => one.new === null || one.scheduled === null || one.backlog === null
  ).length
  return uncounted === 0
    ? undefined
    : `what waits in ${uncounted} of ${plural(partitions.length, "partition")} is not known`
}

const deliveriesText = (status: Status): string => {
  const { deliveries, partitions, repartition } = status
  const { backlog, ackPending, inFlight, inLine, partitionsAnswering, retries } = deliveries
  const count = (number: number | null) => countText(number ?? 0)
  const uncounted = uncountedText(status)
  if (deliveries.waiting === 0 && (inFlight ?? 0) === 0) return uncounted ?? "none waits"
  const withBacklog = partitions.map((one) => one.endpointsWithBacklog)
  const backlogs = withBacklog.reduce<number>((sum, one) => sum + (one ?? 0), 0)
  const inBacklogs = withBacklog.includes(null) ? "backlogs" : plural(backlogs, "backlog")
  const places = [
    `${count(deliveries.new)} new`,
    retries === null
      ? `${count(ackPending)} in flight or for a retry`
      : `${count(retries)} for a retry`,
    `${count(deliveries.scheduled)} scheduled for one`,
    backlog === 0 ? "none in a backlog" : `${count(backlog)} in ${inBacklogs}`
  ]
  const of = partitions.length
  const partly =
    partitionsAnswering < of ? ` (${partitionsAnswering} of ${of} partitions answer)` : ""
  const now =
    partitionsAnswering === 0
      ? ""
      : `; ${count(inFlight)} in flight, ${count(inLine)} in line${partly}`
  const doubted = [
    ...(uncounted === undefined ? [] : [uncounted]),
    ...(repartition === null ? [] : ["those that are being moved count twice"])
  ]
  return [`${countText(deliveries.waiting)} wait: ${places.join(", ")}${now}`, ...doubted].join(
    "; "
  )
}

const oldestText = (status: Status): string => {
  const { at, deliveries, events, oldestWaiting } = status
  const { oldestUnroutedAt } = events
  if (oldestWaiting === null && (deliveries.waiting > 0 || uncountedText(status) !== undefined))
    return "not known"
  if (oldestWaiting === null)
    return oldestUnroutedAt === null
      ? "nothing waits"
      : `an event has waited for ${spanText(at - oldestUnroutedAt)} to be routed`
  const { endpoint, place, since, tenant } = oldestWaiting
  const where =
    place === "schedule"
      ? "for a later retry"
      : `in ${place === "queue" ? "the queue" : "its backlog"}`
  return `${plainText(`${tenant}/${endpoint}`)} has waited for ${spanText(at - since)}, ${where}`
}

const endpointsText = ({ endpoints }: Status): string => {
  if (endpoints === null) return "not known: they were not counted in time"
  const { closed, disabled, halfOpen, open, paused, suspended, total } = endpoints
  return total === 0
    ? "none: `petrel endpoint add` adds one"
    : `${countText(total)}: ${countText(closed)} closed, ${countText(open)} open, ${countText(halfOpen)} half-open, ${countText(paused)} paused, ${suspended === 0 ? "" : `${countText(suspended)} suspended, `}${countText(disabled)} disabled`
}

const lastHourText = ({ at, lastHour }: Status): string => {
  if (lastHour === null) return "not known: no worker answers"
  const { attempts, delivered, p50Ms, p95Ms, since } = lastHour
  // An owner that has just taken over a partition starts counting at zero.
  const from = since > tallySince(at) ? `, in part only since ${localTime(since, at)}` : ""
  return attempts === 0
    ? `no attempts${from}`
    : `${plural(attempts, "attempt")}, ${percentText(delivered, attempts)} delivered, p50 ${spanText(p50Ms ?? 0)}, p95 ${spanText(p95Ms ?? 0)}${from}`
}

const deadText = ({ deadLetters: { lastHour, open, stored } }: Status): string =>
  `${known(stored, (count) => plural(count, "dead letter"))}, ${known(open, countText)} open, ${known(lastHour, countText)} of the last hour`

const incomingText = (incoming: IncomingState, at: number): string => {
  const { bytes, events, gateways, limitBytes, notCopied, oldestAt, quarantined } = incoming
  const underWay = gateways.reduce((sum, one) => sum + one.underWay, 0)
  const behind =
    notCopied === null
      ? "? not in the event stream yet"
      : notCopied === 0
        ? "all are in the event stream"
        : `${countText(notCopied)} not in the event stream yet`
  return [
    events === 0
      ? "nothing has come in"
      : `${countText(events)} came in${oldestAt === null ? "" : ` within ${spanText(at - oldestAt)}`}, ${behind}`,
    `${filledText(bytes, limitBytes)}`,
    `${countText(quarantined)} in quarantine`,
    `${plural(gateways.length, "gateway")}${underWay === 0 ? "" : ` with ${plural(underWay, "request")} under way`}`
  ].join("; ")
}

const outboxText =
  (at: number) =>
  ({
    at: toldAt,
    countedAt = toldAt,
    isSilent,
    name,
    oldestMs,
    pending,
    problem,
    setAside
  }: OutboxView): string => {
    const isNow = countedAt === toldAt && !isSilent
    const [one, several, when] = isNow
      ? ["waits", "wait", ""]
      : ["waited", "waited", ` at ${localTime(countedAt, at)}`]
    const rows =
      pending === 0
        ? `no row ${one}${when}`
        : `${plural(pending, "row")} ${pending === 1 ? one : several}${when}, the oldest for ${spanText(oldestMs)}`
    return [
      `${name}: ${rows}`,
      ...(setAside === 0 ? [] : [`${countText(setAside)} set aside`]),
      ...(isSilent ? [`its relay has been silent for ${spanText(at - toldAt)}`] : []),
      ...(problem === undefined ? [] : [plainText(problem)])
    ].join(", ")
  }

/** Outboxes that are shown. */
const mostOutboxes = 5

const outboxRows = ({ at, incoming }: Status): ReadonlyArray<string> => {
  const outboxes = incoming?.outboxes ?? []
  const shown = outboxes.slice(0, mostOutboxes).map(outboxText(at))
  return outboxes.length <= mostOutboxes
    ? shown
    : [...shown, `and ${outboxes.length - mostOutboxes} more: \`petrel outbox status\` shows all`]
}

const headings = ["worker", "host", "since", "roles", "partitions", "in flight"]

const workerRows = ({ at, partitions, workers }: Status): ReadonlyArray<ReadonlyArray<string>> =>
  (workers ?? []).map(({ host, leaving, partitions: owned, roles, startedAt, worker }) => {
    const answering = partitions.filter(({ answers, owner }) => owner === worker && answers)
    const inFlight = answering.reduce((sum, one) => sum + (one.inFlight ?? 0), 0)
    return [
      plainText(worker),
      plainText(host ?? "-"),
      startedAt === undefined ? "-" : localTime(startedAt, at),
      leaving === true ? "stopping" : (roles?.join(",") ?? "gone"),
      rangesText(owned) || "-",
      answering.length === owned.length ? countText(inFlight) : "?"
    ]
  })

/** Minimum number of workers shown on a small screen. */
const fewest = 2

/** Returns the state of an installation for people, as lines of a screen. */
export const statusLines = (
  status: Status,
  { colour, height, width }: ViewOptions
): ReadonlyArray<string> => {
  const row = (label: string, text: string) => labelled(label.padEnd(12), text, width)
  const painted = (style: "red" | "yellow" | "green", lines: ReadonlyArray<string>) =>
    colour ? lines.map((line) => styleText(style, line, { validateStream: false })) : lines
  const { notices, problems } = status
  const above = [
    ...row("status", `at ${localTime(status.at, status.at)}`),
    ...row("broker", brokerText(status)),
    ...row("storage", spaceText(status)),
    ...row("events", eventsText(status)),
    ...row("deliveries", deliveriesText(status)),
    ...row("oldest", oldestText(status)),
    ...row("last hour", lastHourText(status)),
    ...row("dead", deadText(status)),
    ...row("endpoints", endpointsText(status)),
    ...(status.incoming === null ? [] : row("incoming", incomingText(status.incoming, status.at))),
    ...outboxRows(status).flatMap((text) => row("outbox", text))
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
  const rows = workerRows(status)
  const free = height === undefined ? rows.length : height - above.length - below.length - 3
  const shown = rows.slice(0, rows.length <= free ? rows.length : Math.max(fewest, free - 1))
  const hidden = rows.length - shown.length
  const workers = [
    ...makeTable(headings)
      .lines(shown)
      .map((line) => cutTo(width, line)),
    ...(hidden === 0 ? [] : [`and ${hidden} more: \`petrel workers\` shows all`])
  ]
  return [...above, "", ...(rows.length === 0 ? [] : [...workers, ""]), ...below]
}

const encode = jsonOf(Status)
const pause = "2 seconds"
const linesOf = (found: Status): ReadonlyArray<string> =>
  statusLines(found, { colour: coloured(), width: screenWidth(), height: screenHeight() })

const clear = Effect.suspend(() => (screenWidth() === undefined ? Effect.void : clearScreen))

const show = Effect.fnUntraced(function* (lines: ReadonlyArray<string>) {
  yield* screenWidth() === undefined ? print(`${lines.join("\n")}\n`) : redraw(lines)
})

const watchOnce = Effect.gen(function* () {
  const { json } = yield* petrel
  yield* readStatusAndDisk.pipe(
    Effect.flatMap((found) => (json ? print(JSON.stringify(encode(found))) : show(linesOf(found)))),
    Effect.catchTag(["BrokerAway", "BrokerError", "NoLeader"], ({ message }) =>
      Effect.gen(function* () {
        const at = yield* Clock.currentTimeMillis
        const problem = { code: "broker-silent", text: message }
        if (json) yield* print(JSON.stringify({ at: timeText(at), problems: [problem] }))
        else yield* show([`problem     ${problem.text}; trying again`])
      })
    )
  )
})

/** Shows the state of the whole installation. */
export const status = Command.make(
  "status",
  {
    watch: Flag.Boolean("watch").pipe(
      Flag.withAlias("w"),
      Flag.withDescription("Refresh it every 2 seconds, until it is stopped"),
      Flag.withDefault(false),
      Flag.withoutNegation
    ),
    check: isSet("check", "End with exit code 1, and the reasons, if a person must act")
  },
  Effect.fnUntraced(function* ({ check, watch }) {
    const { json } = yield* petrel
    if (check && watch) return yield* refusal(["--check looks once: leave out --watch"])
    if (watch) {
      const again = Effect.forever(Effect.andThen(watchOnce, Effect.sleep(pause)))
      return yield* clear.pipe(
        Effect.when(Effect.succeed(!json)),
        Effect.andThen(again),
        // It shows by itself that the broker does not answer.
        Effect.provide(connectedToServe),
        untilStopped
      )
    }
    const found = yield* Effect.provide(readStatusAndDisk, connected)
    if (json) yield* print(JSON.stringify(encode(found)))
    else for (const line of linesOf(found)) yield* print(line)
    const { problems } = found
    if (check && problems.length > 0)
      return yield* new Refused({ message: problems.map(({ text }) => text).join("; ") })
  })
).pipe(
  Command.withDescription("Show the state of the system, and what to do about problems"),
  Command.withShortDescription("Show the state of the system")
)
