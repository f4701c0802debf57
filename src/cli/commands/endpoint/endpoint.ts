import { Clock, Effect, Option, Result } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import type { EndpointName } from "../../../domain/endpoint.ts"
import { endpointLabel } from "../../../domain/endpoint.ts"
import { idFilterExpected, isIdWanted, readIdFilter } from "../../../domain/endpoint-id-filter.ts"
import { EndpointState, endpointStateOf } from "../../../domain/health.ts"
import { hasMetadata } from "../../../domain/metadata.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { isToken } from "../../../domain/token.ts"
import { removeEndpoint } from "../../../operations/endpoints/change-state.ts"
import {
  listEndpoints,
  showActivity,
  showEndpoint
} from "../../../operations/endpoints/endpoint-queries.ts"
import { EndpointDetail, ListedEndpoint } from "../../../operations/endpoints/endpoint-view.ts"
import { encodeOutline, outlineEndpoint } from "../../../operations/endpoints/outlined-policy.ts"
import { plural } from "../../../text/quantities.ts"
import {
  byFlag,
  endpointArgument,
  isSet,
  repeated,
  revealFlag,
  svgFlag,
  thisUser,
  writeSvg
} from "../../flags/shared.ts"
import { outlineLines } from "../../format/outline.ts"
import { cutTo, makeTable, screenWidth } from "../../format/screen.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { canAsk, print, remark } from "../../terminal/stdout.ts"
import { endpointRetryNow } from "../delivery/delivery.ts"
import { diagnose } from "./diagnose.ts"
import { readMetadata } from "./flag-readers.ts"
import { diff, showHistory } from "./history.ts"
import { recover } from "./recover.ts"
import { disable, enable, pause, resume } from "./state.ts"
import { test } from "./test.ts"
import { endpointText, listHeadings, listRow } from "./view.ts"
import { add, rotate, set } from "./write.ts"

const encodeListed = jsonOf(ListedEndpoint)
const encodeDetail = jsonOf(EndpointDetail)

/** Endpoints whose columns are aligned together. */
const rowsPerPage = 1_000

const list = Command.make(
  "list",
  {
    tenant: Argument.String("TENANT").pipe(
      Argument.withDescription("Only this tenant's"),
      Argument.filterMap(
        (text) => (isToken(text) ? Option.some(text) : Option.none()),
        () => "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
      ),
      Argument.optional
    ),
    id: Flag.String("id").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription(
        "Only this one; with * at the end, all whose ids have this beginning: 'bill-*'"
      ),
      Flag.filterMap(
        (text) => Option.fromUndefinedOr(readIdFilter(text)),
        () => idFilterExpected
      ),
      Flag.optional
    ),
    state: Flag.Literals("state", EndpointState.literals).pipe(
      Flag.withMetavar("STATE"),
      Flag.withDescription(
        `Only those in this state: ${EndpointState.literals.join(", ")} (closed: listed as enabled); may be repeated`
      ),
      Flag.atLeast(0)
    ),
    metadata: repeated(
      "metadata",
      "KEY=VALUE",
      "Only those with this entry, such as 'customer=42'; may be repeated"
    )
  },
  Effect.fnUntraced(function* ({ id, metadata, state, tenant }) {
    const { json } = yield* petrel
    const entries = readMetadata(metadata)
    if (Result.isFailure(entries)) return yield* refusal(entries.failure)
    const all = yield* listEndpoints(Option.getOrUndefined(tenant)).pipe(Effect.provide(connected))
    const listed = all.filter(
      (one) =>
        Option.match(id, { onNone: () => true, onSome: (ids) => isIdWanted(one.id, ids) }) &&
        (state.length === 0 || state.includes(endpointStateOf(one, one.circuit.state))) &&
        hasMetadata(one.metadata, Object.entries(entries.success))
    )
    if (json)
      return yield* Effect.forEach(listed, (one) => print(JSON.stringify(encodeListed(one))), {
        discard: true
      })
    if (listed.length === 0 && all.length > 0)
      return yield* remark(`none of ${plural(all.length, "endpoint")} matches`)
    if (listed.length === 0)
      return yield* remark(
        Option.match(tenant, {
          onNone: () => "there are no endpoints: `petrel endpoint add` adds one",
          onSome: (name) => `${name} has no endpoints: \`petrel endpoint add\` adds one`
        })
      )
    const width = screenWidth()
    const headings = listHeadings(width)
    const table = makeTable(headings)
    for (let from = 0; from < listed.length; from += rowsPerPage) {
      const rows = listed
        .slice(from, from + rowsPerPage)
        .map((one) => listRow(one).slice(0, headings.length))
      for (const line of table.lines(rows)) yield* print(cutTo(width, line))
    }
  })
).pipe(Command.withDescription("List the endpoints, or a tenant's"))

/** Draws an endpoint's retry policies. */
const showRetry = Effect.fnUntraced(function* (name: EndpointName, svg: string | undefined) {
  const { json } = yield* petrel
  const outlines = yield* outlineEndpoint(name)
  if (svg !== undefined) return yield* writeSvg(svg, outlines)
  if (json)
    return yield* Effect.forEach(outlines, (one) => print(JSON.stringify(encodeOutline(one))), {
      discard: true
    })
  const drawn = outlines.map((one) => outlineLines(one, screenWidth()).join("\n"))
  yield* print(drawn.join("\n\n"))
})

const show = Command.make(
  "show",
  {
    name: endpointArgument,
    reveal: revealFlag,
    history: isSet("history", "Show all changes of the endpoint instead, even if it was removed"),
    retry: isSet("retry", "Draw its retry policies instead"),
    svg: svgFlag
  },
  Effect.fnUntraced(function* ({ history, name, retry, reveal, svg }) {
    if (svg !== undefined && !retry)
      return yield* refusal(["--svg goes with --retry, which it draws"])
    if (retry) return yield* showRetry(name, svg).pipe(Effect.provide(connected))
    if (history && reveal)
      return yield* refusal([
        "--history and --reveal cannot be combined: the history has no secrets"
      ])
    if (history) return yield* showHistory(name).pipe(Effect.provide(connected))
    const found = yield* showEndpoint(name, { revealTo: reveal ? thisUser() : undefined }).pipe(
      Effect.provide(connected)
    )
    const at = yield* Clock.currentTimeMillis
    yield* report(encodeDetail(found), endpointText(found, { at, width: screenWidth() }))
  })
).pipe(
  Command.withDescription("Show an endpoint's configuration and state, or its changes"),
  Command.withExamples([
    { command: "petrel endpoint show acme/billing" },
    {
      command: "petrel endpoint show acme/billing --history",
      description: "Who changed what, and when"
    },
    { command: "petrel endpoint show acme/billing --retry", description: "Its waits, drawn" }
  ])
)

interface Waiting {
  readonly count: number
  /** Whether there may be more than could be counted. */
  readonly isLeast: boolean
  /** Whether any of them is in flight, and may succeed. */
  readonly isSending: boolean
}

const countWaiting = Effect.fnUntraced(function* (name: EndpointName) {
  const { inFlight, waiting } = yield* showActivity(name)
  const { backlog, memory, queue, schedules } = waiting
  const stored = queue + (schedules ?? 0) + backlog
  // Those that come directly from their event are in the owner's memory alone, the others in both.
  const held = (inFlight ?? 0) + (memory ?? 0)
  return {
    count: Math.max(stored, held),
    isLeast: schedules === null || held > 0,
    isSending: (inFlight ?? 0) > 0
  } satisfies Waiting
})

const deliveriesText = ({ count, isLeast }: Waiting): string =>
  `${isLeast ? "at least " : ""}${plural(count, "delivery", "deliveries")}`

/** @param when with a space before it. */
const endText = ({ count, isSending }: Waiting, when = ""): string =>
  count === 1
    ? `ends as a dead letter${when}${isSending ? ", unless it is in flight and succeeds" : ""}`
    : `end as dead letters${when}${isSending ? ", except those in flight that succeed" : ""}`

/** What becomes of deliveries that waited for an endpoint that is removed. */
const removalText = (waiting: Waiting): string => {
  if (waiting.count > 0)
    return `; ${deliveriesText(waiting)} that waited for it ${endText(waiting)}`
  return waiting.isLeast
    ? "; its waiting deliveries end as dead letters"
    : "; nothing waited for it"
}

/**
 * Asks on a terminal whether to remove an endpoint. Fails without one where deliveries wait, since
 * nobody may know of them.
 */
const agreed = Effect.fnUntraced(function* (name: EndpointName, waiting: Waiting) {
  const { json } = yield* petrel
  const label = endpointLabel(name)
  const { count } = waiting
  const waits = `${deliveriesText(waiting)} ${count === 1 ? "waits" : "wait"} for ${label}`
  if (!json && (yield* canAsk))
    return yield* Prompt.run(
      Prompt.Confirm({
        message:
          count === 0 ? `Remove ${label}?` : `Remove ${label}? ${waits}, and ${endText(waiting)}.`
      })
    )
  if (count === 0) return true
  return yield* new Refused({
    message: `${waits}, and ${endText(waiting, " where it is removed")}: say --yes to remove it, or \`petrel endpoint pause ${label}\` to keep them`
  })
})

const remove = Command.make(
  "remove",
  {
    name: endpointArgument,
    yes: isSet("yes", "Remove it without asking, whatever waits for it"),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, name, yes }) {
    const label = endpointLabel(name)
    yield* Effect.gen(function* () {
      const waiting = yield* countWaiting(name)
      if (!yes && !(yield* agreed(name, waiting))) return yield* remark(`${label} stays`)
      const removed = yield* removeEndpoint(name, by)
      yield* report(
        { ...removed, waiting: waiting.count },
        `${label} is removed${removalText(waiting)}`
      )
    }).pipe(Effect.provide(connected))
  })
).pipe(Command.withDescription("Remove an endpoint"))

export const endpoint = Command.make("endpoint").pipe(
  Command.withDescription("Where events are sent, and how"),
  Command.withSubcommands([
    add,
    list,
    show,
    diff,
    diagnose,
    test,
    set,
    rotate,
    pause,
    resume,
    enable,
    disable,
    endpointRetryNow,
    recover,
    remove
  ])
)
