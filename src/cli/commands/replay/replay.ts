import { Clock, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { endpointLabel } from "../../../domain/endpoint.ts"
import { Invalid } from "../../../domain/problem.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { TypeFilter } from "../../../domain/type-filter.ts"
import {
  Replayed,
  ReplayPlan,
  type ReplayRequest,
  type ReplaySelection,
  replayIdProblem,
  replayProblems
} from "../../../operations/replays/replay-events.ts"
import type { RoundCounts } from "../../../rounds/round.ts"
import { countText, localTime, plural } from "../../../text/quantities.ts"
import {
  byFlag,
  endpointNameFlag,
  givenTimeFlag,
  isSet,
  maybe,
  textFlag
} from "../../flags/shared.ts"
import { cutTo, screenWidth } from "../../format/screen.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { makeProgress, watchRounds } from "../../terminal/progress.ts"
import { remark } from "../../terminal/stdout.ts"

const encodePlan = jsonOf(ReplayPlan)
const encodeDone = jsonOf(Replayed)

const decode = Schema.decodeUnknownOption(Schema.NonEmptyArray(TypeFilter))

/** `--types FILTERS`: event types as NATS wildcards, comma-separated. */
const typesFlag = Flag.String("types").pipe(
  Flag.withMetavar("FILTERS"),
  Flag.withDescription(
    "Only these types: 'invoice.>,*.created' (default: those the endpoint wants)"
  ),
  Flag.filterMap(
    (text) => decode(text.split(",").map((filter) => filter.trim())),
    () => "must be event types such as 'invoice.>,*.created'"
  ),
  maybe
)

/** Maximum number of types that are listed by name. */
const named = 15

/** Imported on demand: other commands do not need the engine. */
const operation = Effect.promise(() => import("../../../operations/replays/replay-events.ts"))

const eventsText = (count: number): string => plural(count, "event")

/** Returns why selected events are not sent, one sentence each. */
const leftTexts = ({
  before,
  delivered,
  underWay,
  unrouted
}: ReplaySelection): ReadonlyArray<string> => [
  ...(before === 0 ? [] : [`${countText(before)} left out: sent by this replay before`]),
  ...(delivered === 0 ? [] : [`${countText(delivered)} left out: the endpoint has taken them`]),
  ...(underWay === 0 ? [] : [`${countText(underWay)} left out: on their way there already`]),
  ...(unrouted === 0 ? [] : [`${countText(unrouted)} left out: workers have yet to route them`])
]

const planLines = (plan: ReplayPlan, label: string): ReadonlyArray<string> => {
  const types = Object.entries(plan.types)
  const more = types.slice(named)
  const rest = more.reduce((sum, [, count]) => sum + count, plan.otherTypes)
  const number = `${plan.otherTypes === 0 ? "" : "more than "}${plural(more.length, "more type")}`
  const rows = types.slice(0, named)
  const digits = Math.max(0, ...rows.map(([, count]) => countText(count).length))
  return [
    `would send ${eventsText(plan.replay)} to ${label}`,
    ...rows.map(([type, count]) =>
      cutTo(screenWidth(), `  ${countText(count).padStart(digits)}  ${type}`)
    ),
    ...(rest > 0 ? [`  and ${countText(rest)} of ${number}`] : []),
    ...leftTexts(plan)
  ]
}

/** Says that a replay reaches further back than events are kept. */
const tellKept = Effect.fnUntraced(function* (request: ReplayRequest) {
  const { eventsKeptSince } = yield* operation
  const kept = yield* eventsKeptSince(request)
  if (kept === undefined) return
  const since = localTime(kept, yield* Clock.currentTimeMillis)
  yield* remark(`events are kept since ${since} only: older ones are gone and not among these`)
})

const preview = Effect.fnUntraced(function* (request: ReplayRequest, by: string) {
  const { previewReplay } = yield* operation
  const plan = yield* previewReplay(request, by)
  yield* report(
    { event: "planned", ...encodePlan(plan) },
    planLines(plan, endpointLabel(request.to)).join("\n")
  )
  yield* tellKept(request)
})

const brokenOff = (counts: RoundCounts, total: number, id: string): string => {
  const sent = counts.begun + counts.finished + counts.before
  return `stopped after ${countText(sent)} of ${countText(total)}: run the same command again, and replay ${id} continues`
}

const doneText = (done: Replayed, label: string): string => {
  const { gone, id, replayed } = done
  return [
    replayed === 0
      ? `there is nothing to send to ${label}`
      : `${eventsText(replayed)} sent to ${label} (replay ${id}): \`petrel history --endpoint ${label}\` shows what becomes of ${replayed === 1 ? "it" : "them"}`,
    ...leftTexts(done),
    ...(gone === 0 ? [] : [`${countText(gone)} left out: too old and no longer kept`])
  ].join("\n")
}

const send = Effect.fnUntraced(function* (request: ReplayRequest, by: string) {
  const { json } = yield* petrel
  const label = endpointLabel(request.to)
  const { startReplay } = yield* operation
  const progress = yield* makeProgress(json)
  const held = (waiting: number) => progress.held(label, waiting)
  const { count, id, run } = yield* startReplay(request, { by, held })
  const { done } = yield* watchRounds(run, count, progress, (counts) =>
    brokenOff(counts, count, id)
  )
  yield* report({ event: "done", ...encodeDone(done) }, doneText(done, label))
  yield* tellKept(request)
})

/** Sends old events to one endpoint, again or for the first time. */
export const replay = Command.make(
  "replay",
  {
    to: endpointNameFlag("to", "Where they are sent"),
    event: textFlag("event", "ID", "Only the event of this id, whatever its type"),
    types: typesFlag,
    since: givenTimeFlag("since", "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
    until: givenTimeFlag("until", "Up to then, in the same form (default: now)"),
    skipped: isSet("skipped", "Only events that were skipped because it was disabled"),
    onlyMissing: isSet(
      "only-missing",
      "Leave out events that it has taken or that are on their way there"
    ),
    id: Flag.String("id").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription(
        "Name of this replay: the same name continues it (default: made from the other flags)"
      ),
      Flag.filterMap(
        (text) => (replayIdProblem(text) === undefined ? Option.some(text) : Option.none()),
        (text) => replayIdProblem(text) ?? ""
      ),
      maybe
    ),
    by: byFlag,
    dryRun: isSet("dry-run", "Say how many there are of each type, and send none")
  },
  Effect.fnUntraced(function* ({ by, dryRun, since, until, ...rest }) {
    const request = {
      ...rest,
      since: since?.at,
      until: until?.at,
      // The same command goes on with the same replay: `1h` is not resolved to a time.
      asked: JSON.stringify([since?.text.trim(), until?.text.trim()])
    }
    const problems = replayProblems(request, yield* Clock.currentTimeMillis)
    if (problems.length > 0) return yield* new Invalid({ problems })
    yield* (dryRun ? preview(request, by) : send(request, by)).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription(
    "Send past events to one endpoint, at its pace, under the ids they had. If it is interrupted, run the same command again: it continues"
  ),
  Command.withShortDescription("Send past events to one endpoint"),
  Command.withExamples([
    { command: "petrel replay --to acme/billing --since 2d --types 'invoice.>' --dry-run" },
    {
      command: "petrel replay --to acme/billing --event acme.invoice-42-paid",
      description: "One event, once more"
    },
    {
      command: "petrel replay --to acme/billing --skipped",
      description: "What it missed while it was disabled"
    },
    {
      command: "petrel replay --to acme/crm --since 2026-03-04 --only-missing",
      description: "What has never reached it"
    }
  ])
)
