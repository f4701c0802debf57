import { createHash } from "node:crypto"
import { Clock, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { isToken } from "../domain/token.ts"
import { getEndpoint } from "../endpoints/endpoint-store.ts"
import type { Replay, ReplayOptions } from "../operations/rounds/replay.ts"
import type { StartedRound } from "../operations/rounds/round.ts"
import { countText, plural } from "../operations/text/number-format.ts"
import { byFlag } from "./asked-by.ts"
import { isSet } from "./endpoint-flags.ts"
import { Refused } from "./refused.ts"
import { makeProgress } from "./replay-progress.ts"
import { typesFlag } from "./replay-types.ts"
import { connected, petrel, report } from "./root-command.ts"
import { cutTo, screenWidth } from "./screen.ts"
import type { EndpointName, GivenTime } from "./selection.ts"
import { endpointNameFlag, givenTimeFlag } from "./selection.ts"
import { print } from "./stdout.ts"
import { remark } from "./terminal.ts"

/** Maximum number of types that are listed by name. */
const named = 15

interface Asked {
  readonly to: EndpointName
  readonly types: ReadonlyArray<string> | undefined
  readonly since: GivenTime | undefined
  readonly until: GivenTime | undefined
  readonly skipped: boolean
  readonly onlyMissing: boolean
  readonly id: string | undefined
  readonly by: string
}

/** Imported on demand: other commands do not need the engine. */
const engine = Effect.promise(() => import("../operations/rounds/replay.ts"))

/** Identifies a replay by its literal arguments: `1h` is not resolved to a time. */
const fingerprint = ({ onlyMissing, since, skipped, to, types, until }: Asked): string =>
  createHash("sha256")
    .update(
      JSON.stringify([
        to.tenant,
        to.id,
        types?.toSorted(),
        since?.text.trim(),
        until?.text.trim(),
        skipped,
        onlyMissing
      ])
    )
    .digest("hex")
    .slice(0, 10)

const eventsText = (count: number): string => plural(count, "event")

const check = Effect.fnUntraced(function* ({ since, until }: Asked, now: number) {
  if (since !== undefined && until !== undefined && since.at > until.at)
    return yield* new Refused({ message: "--since is later than --until: nothing lies between" })
  if (since !== undefined && since.at > now)
    return yield* new Refused({ message: "--since is in the future: there are no events yet" })
})

/** Fails if the endpoint accepts no deliveries. */
const refuseUnfit = Effect.fnUntraced(function* ({ id, tenant }: EndpointName) {
  const { endpoint } = yield* getEndpoint(tenant, id)
  if (endpoint.disabled !== undefined)
    return yield* new Refused({
      message: `${tenant}/${id} is disabled and takes nothing: put it back to work first, with \`petrel endpoint enable ${tenant}/${id}\``
    })
})

/** Returns the endpoint's subscribed types; empty if it does not exist. */
const typesOf = ({ id, tenant }: EndpointName) =>
  getEndpoint(tenant, id).pipe(
    Effect.map(({ endpoint }) => endpoint.types),
    Effect.catchTags({
      EndpointNotFound: () => Effect.succeed([]),
      EndpointUnreadable: () => Effect.succeed([])
    })
  )

/** Returns why selected events are not sent, one sentence each. */
const leftTexts = ({ before, delivered, open, unrouted }: Replay): ReadonlyArray<string> => [
  ...(before === 0 ? [] : [`${countText(before)} left out: sent by this replay before`]),
  ...(delivered === 0 ? [] : [`${countText(delivered)} left out: the endpoint has taken them`]),
  ...(open === 0 ? [] : [`${countText(open)} left out: on their way there already`]),
  ...(unrouted === 0 ? [] : [`${countText(unrouted)} left out: workers are still to route them`])
]

const told = ({ before, delivered, open, record, unrouted }: Replay) => ({
  id: record.id,
  since: record.since,
  until: record.until,
  before,
  delivered,
  underWay: open,
  unrouted
})

const plan = Effect.fnUntraced(function* (asked: Asked, options: ReplayOptions) {
  const { countTypes, planReplay } = yield* engine
  yield* refuseUnfit(asked.to)
  const replay = yield* planReplay(options)
  const types = countTypes(replay.events)
  const { json } = yield* petrel
  if (json)
    return yield* print(
      JSON.stringify({
        event: "planned",
        ...told(replay),
        replay: replay.events.length,
        types: Object.fromEntries(types)
      })
    )
  const { id, tenant } = asked.to
  const width = screenWidth()
  const more = types.slice(named)
  const rest = more.reduce((sum, [, count]) => sum + count, 0)
  const rows = types.slice(0, named)
  const figures = Math.max(0, ...rows.map(([, count]) => countText(count).length))
  yield* print(`would send ${eventsText(replay.events.length)} to ${tenant}/${id}`)
  for (const [type, count] of rows)
    yield* print(cutTo(width, `  ${countText(count).padStart(figures)}  ${type}`))
  if (rest > 0) yield* print(`  and ${countText(rest)} of ${plural(more.length, "more type")}`)
  for (const line of leftTexts(replay)) yield* print(line)
})

const brokenOff = (
  counts: Readonly<Record<StartedRound, number>>,
  total: number,
  id: string
): string => {
  const sent = counts.begun + counts.finished + counts.before
  return `stopped after ${countText(sent)} of ${countText(total)}: run the same command again and replay ${id} goes on`
}

const run = Effect.fnUntraced(function* (asked: Asked, options: ReplayOptions) {
  const { json } = yield* petrel
  const { id, tenant } = asked.to
  const { openReplay } = yield* engine
  const progress = makeProgress(json)
  const held = (waiting: number) => progress.held(`${tenant}/${id}`, waiting)
  const replay = yield* openReplay({ ...options, held })
  const total = replay.count
  const counts: Record<StartedRound, number> = { begun: 0, finished: 0, before: 0, gone: 0 }
  const stopped = Effect.suspend(() => remark(brokenOff(counts, total, replay.record.id)))
  progress.total(total)
  yield* replay
    .begin((begun) => {
      counts[begun]++
      progress.advance()
    })
    .pipe(
      Effect.ensuring(Effect.sync(progress.clear)),
      Effect.onInterrupt(() => stopped),
      Effect.tapError(() => stopped)
    )
  if (replay.unfit !== undefined) yield* refuseUnfit(asked.to)
  const sent = counts.begun + counts.finished
  const gone =
    counts.gone === 0 ? [] : [`${countText(counts.gone)} left out: too old and not kept any more`]
  yield* report(
    { event: "done", ...told(replay), replayed: sent, gone: counts.gone },
    [
      sent === 0
        ? `there is nothing to send to ${tenant}/${id}`
        : `${eventsText(sent)} sent to ${tenant}/${id} (replay ${replay.record.id}): \`petrel history --endpoint ${tenant}/${id}\` shows what comes of ${sent === 1 ? "it" : "them"}`,
      ...leftTexts(replay),
      ...gone
    ].join("\n")
  )
})

/** Sends old events to one endpoint, again or for the first time. */
export const replay = Command.make(
  "replay",
  {
    to: endpointNameFlag("to", "Where they are sent"),
    types: typesFlag,
    since: givenTimeFlag("since", "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
    until: givenTimeFlag("until", "Up to then, in the same form (default: now)"),
    skipped: isSet("skipped", "Only what it was not sent because it was disabled then"),
    onlyMissing: isSet("only-missing", "Not what it has taken, nor what is on its way there"),
    id: Flag.String("id").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription(
        "Of this replay: the same again goes on with it (default: made from the other flags)"
      ),
      Flag.filterMap(
        (text) => (isToken(text) && text.length <= 40 ? Option.some(text) : Option.none()),
        () => "must be 1 to 40 letters, digits, - or _"
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    by: byFlag,
    dryRun: isSet("dry-run", "Say how many there are of each type, and send none")
  },
  Effect.fnUntraced(function* ({ dryRun, ...asked }) {
    const now = yield* Clock.currentTimeMillis
    yield* check(asked, now)
    const print = fingerprint(asked)
    yield* Effect.gen(function* () {
      const wanted = asked.types ?? (asked.skipped ? [">"] : yield* typesOf(asked.to))
      const options: ReplayOptions = {
        tenant: asked.to.tenant,
        endpoint: asked.to.id,
        name: asked.id ?? print,
        asked: print,
        by: asked.by,
        types: wanted,
        since: asked.since?.at ?? 0,
        until: asked.until?.at ?? now,
        skipped: asked.skipped,
        onlyMissing: asked.onlyMissing,
        mayFollow: asked.skipped || asked.onlyMissing
      }
      yield* dryRun ? plan(asked, options) : run(asked, options)
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription(
    "Send events of the past to one endpoint, at its pace, under the ids they had. Broken off, the same command goes on where it was"
  ),
  Command.withShortDescription("Send events of the past to one endpoint"),
  Command.withExamples([
    { command: "petrel replay --to acme/billing --since 2d --types 'invoice.>' --dry-run" },
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
