import { Clock, Effect, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { factKinds } from "../../../domain/fact.ts"
import { factLine } from "../../../history/line.ts"
import { readNewestFacts } from "../../../history/newest.ts"
import type { StoredFact } from "../../../history/read.ts"
import { readFacts } from "../../../history/read.ts"
import { type EventQuery, readEventFacts } from "../../../operations/history/event-facts.ts"
import { endpointFlag, limitFlag, nameFlag, tenantFlag, timeFlag } from "../../flags/shared.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { coloured, remark } from "../../terminal/stdout.ts"
import { lagText } from "../projection.ts"
import { historyExport } from "./export.ts"
import { historyTotals } from "./totals.ts"

/** Prints a fact: the stored record with its `seq`, or a line for people. */
export const reportFact = Effect.fnUntraced(function* ({ fact, record, seq }: StoredFact) {
  const now = yield* Clock.currentTimeMillis
  yield* report({ seq, ...record }, factLine(fact, { now, colour: coloured() }))
})

const flags = {
  tenant: tenantFlag,
  endpoint: endpointFlag,
  event: Flag.String("event").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription("Only of this event: its id, or evt_ and its sequence"),
    Flag.optional
  ),
  kind: nameFlag("kind", factKinds).pipe(
    Flag.withMetavar("KIND"),
    Flag.withDescription(`Only of this kind, may be repeated: ${factKinds.join(", ")}`),
    Flag.atLeast(0)
  ),
  since: timeFlag("since", "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
  until: timeFlag("until", "Up to then, in the same form"),
  limit: limitFlag("Only the newest so many of them, the newest one last"),
  follow: Flag.Boolean("follow").pipe(
    Flag.withAlias("f"),
    Flag.withDescription("Go on with what happens from now on"),
    Flag.withDefault(false)
  )
}

/** The facts about one event; says so where the delivery log says where they are. */
const aboutEvent = (query: EventQuery, limit = Number.POSITIVE_INFINITY) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { facts, lag } = yield* readEventFacts(query)
      const { json } = yield* petrel
      if (lag !== undefined && !json)
        yield* remark(`Found by the delivery log, which is ${lagText(lag)} the history.`)
      return Stream.fromIterable(facts.slice(-limit))
    })
  )

/** Prints the facts as stored, or one line each. */
export const history = Command.make(
  "history",
  flags,
  Effect.fnUntraced(function* ({ endpoint, event, follow, kind, limit, since, tenant, until }) {
    let found = 0
    const query = {
      tenant,
      endpoint,
      event: event._tag === "Some" ? event.value : undefined,
      kinds: kind,
      since,
      until,
      follow
    }
    const facts =
      query.event === undefined || follow
        ? limit === undefined
          ? readFacts(query)
          : readNewestFacts(query, limit)
        : aboutEvent({ ...query, event: query.event }, limit)
    const read = facts.pipe(
      Stream.tap(() =>
        Effect.sync(() => {
          found++
        })
      ),
      Stream.runForEach(reportFact),
      Effect.provide(connected)
    )
    yield* follow ? untilStopped(read) : read
    const { json } = yield* petrel
    if (found === 0 && !json) yield* remark("Nothing in the history is like that.")
  })
).pipe(
  Command.withDescription("Show what happened, one line a fact, oldest first"),
  Command.withExamples([
    { command: "petrel history --limit 20", description: "The newest 20, the newest one last" }
  ]),
  Command.withShortDescription("Show what happened"),
  Command.withSubcommands([historyExport, historyTotals])
)
