import { Clock, Effect, Option, Stdio } from "effect"
import { Argument, Command, Flag, Prompt } from "effect/cli"
import { readRaised } from "../alerts/alert-store.ts"
import { readAllNow, readEndpointNow } from "../delivery/introspection/endpoint-activity.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import { isToken } from "../domain/token.ts"
import { disableEndpoint, enableEndpoint } from "../endpoints/endpoint-state.ts"
import { getEndpoint, listEndpoints, removeEndpoint } from "../endpoints/endpoint-store.ts"
import { byFlag } from "./asked-by.ts"
import { add } from "./endpoint-add.ts"
import { diff } from "./endpoint-diff.ts"
import { endpointArgument, isSet, revealFlag } from "./endpoint-flags.ts"
import { healthOf, healthOfAll } from "./endpoint-health.ts"
import { showHistory } from "./endpoint-history.ts"
import { nowJson } from "./endpoint-now.ts"
import { pause, resume } from "./endpoint-pause.ts"
import { rotate } from "./endpoint-rotate.ts"
import { set } from "./endpoint-set.ts"
import { endpointJson, endpointText, listHeadings, listRow, stateText } from "./endpoint-view.ts"
import { Refused } from "./refused.ts"
import { connected, petrel, report } from "./root-command.ts"
import { cutTo, screenWidth } from "./screen.ts"
import { print } from "./stdout.ts"
import { makeTable } from "./table.ts"
import { remark } from "./terminal.ts"

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
    )
  },
  Effect.fnUntraced(function* ({ tenant }) {
    const { json } = yield* petrel
    const of = Option.getOrUndefined(tenant)
    const { activity, health, listed } = yield* Effect.all(
      { listed: listEndpoints(of), health: healthOfAll, activity: readAllNow(of) },
      { concurrency: "unbounded" }
    ).pipe(Effect.provide(connected))
    const nowOf = ({ id, tenant }: Endpoint) => activity(tenant, id)
    if (json) {
      for (const one of listed) {
        const now = nowOf(one.endpoint)
        const fares = endpointJson(one, false, health(one.endpoint))
        yield* print(JSON.stringify({ ...fares, ...(now === undefined ? {} : nowJson(now)) }))
      }
      return
    }
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
        .map((one) => listRow(one, health(one.endpoint), nowOf(one.endpoint)))
        .map((row) => row.slice(0, headings.length))
      for (const line of table.lines(rows)) yield* print(cutTo(width, line))
    }
  })
).pipe(Command.withDescription("List the endpoints, or a tenant's"))

const show = Command.make(
  "show",
  {
    name: endpointArgument,
    reveal: revealFlag,
    history: isSet("history", "Show all its changes instead, also of one that is removed")
  },
  Effect.fnUntraced(function* ({ history, name, reveal }) {
    if (history && reveal)
      return yield* new Refused({
        message: "--history and --reveal exclude each other: the history has no secrets"
      })
    if (history) return yield* showHistory(name).pipe(Effect.provide(connected))
    const { id: endpoint, tenant } = name
    const { activity, health, raised, stored } = yield* Effect.gen(function* () {
      const stored = yield* getEndpoint(tenant, endpoint)
      const health = yield* healthOf(stored.endpoint)
      const raised = yield* readRaised({ tenant, endpoint })
      return { stored, health, raised, activity: yield* readEndpointNow(tenant, endpoint) }
    }).pipe(Effect.provide(connected))
    const at = yield* Clock.currentTimeMillis
    yield* report(
      { ...endpointJson(stored, reveal, health), ...nowJson(activity), raised },
      endpointText(stored, health, activity, { reveal, at, width: screenWidth(), raised })
    )
  })
).pipe(
  Command.withDescription("Show an endpoint's configuration and how it fares, or its changes"),
  Command.withExamples([
    { command: "petrel endpoint show acme/billing" },
    {
      command: "petrel endpoint show acme/billing --history",
      description: "Who changed what, and when"
    }
  ])
)

const enable = Command.make(
  "enable",
  { name: endpointArgument, by: byFlag },
  Effect.fnUntraced(function* ({ by, name: { id, tenant } }) {
    const stored = yield* enableEndpoint({ tenant, endpoint: id }, by).pipe(
      Effect.provide(connected)
    )
    yield* report(
      { ...endpointJson(stored, false), changed: stored.changed },
      stored.changed ? `${tenant}/${id} is enabled` : `${tenant}/${id} is enabled already`
    )
  })
).pipe(Command.withDescription("Put a disabled endpoint back to work"))

const disable = Command.make(
  "disable",
  {
    name: endpointArgument,
    reason: Flag.String("reason").pipe(
      Flag.withMetavar("TEXT"),
      Flag.withDescription("Told in the history (default: by hand)"),
      Flag.withDefault("by hand")
    ),
    by: byFlag
  },
  Effect.fnUntraced(function* ({ by, name: { id, tenant }, reason }) {
    const stored = yield* disableEndpoint({ tenant, endpoint: id }, reason, by).pipe(
      Effect.provide(connected)
    )
    const now = yield* Clock.currentTimeMillis
    yield* report(
      { ...endpointJson(stored, false), changed: stored.changed },
      stored.changed
        ? `${tenant}/${id} is disabled: it gets no events, and what waits for it ends as dead letters`
        : `${tenant}/${id} is so already: ${stateText(stored.endpoint, now)}`
    )
  })
).pipe(Command.withDescription("Take an endpoint out of service"))

/**
 * Asks for confirmation on a terminal. Without one, the answer is yes: a program that runs the
 * command has already decided.
 */
const agreed = Effect.fnUntraced(function* (question: string) {
  const stdio = yield* Stdio.Stdio
  const asks = (yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal)
  return asks ? yield* Prompt.run(Prompt.Confirm({ message: question })) : true
})

const remove = Command.make(
  "remove",
  { name: endpointArgument, yes: isSet("yes", "Do not ask"), by: byFlag },
  Effect.fnUntraced(function* ({ by, name: { id, tenant }, yes }) {
    const label = `${tenant}/${id}`
    const question = `Remove ${label}? What waits for it ends as dead letters.`
    if (!yes && !(yield* agreed(question))) return yield* remark(`${label} stays`)
    yield* removeEndpoint(tenant, id, by).pipe(Effect.provide(connected))
    yield* report(
      { tenant, id, removed: true },
      `${label} is removed; what waits for it ends as dead letters`
    )
  })
).pipe(Command.withDescription("Remove an endpoint"))

export const endpoint = Command.make("endpoint").pipe(
  Command.withDescription("Where events are sent, and how"),
  Command.withSubcommands([
    add,
    list,
    show,
    diff,
    set,
    rotate,
    pause,
    resume,
    enable,
    disable,
    remove
  ])
)
