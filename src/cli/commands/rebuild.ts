import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import {
  type RebuiltEndpoint,
  type RebuiltHealth,
  rebuildEndpoints,
  rebuildHealth
} from "../../operations/endpoints/rebuild.ts"
import { plainText } from "../../text/plain-text.ts"
import { plural } from "../../text/quantities.ts"
import { byFlag, isSet } from "../flags/shared.ts"
import { connected, petrel, report } from "../root-command.ts"
import { remark } from "../terminal/stdout.ts"

const shown = (value: unknown): string => (value === undefined ? "-" : plainText(String(value)))

const differenceText = ({ field, told, stored }: RebuiltHealth["differences"][number]): string =>
  `  ${field}: stored ${shown(stored)}, history ${shown(told)}`

const health = Command.make(
  "health",
  {
    dryRun: isSet("dry-run", "Only say what differs")
  },
  Effect.fnUntraced(function* ({ dryRun }) {
    const { json } = yield* petrel
    const began = yield* Clock.currentTimeMillis
    const { endpoints, rebuilt } = yield* Effect.provide(rebuildHealth({ dryRun }), connected)
    for (const one of rebuilt)
      yield* report(one, [one.endpoint, ...one.differences.map(differenceText)].join("\n"))
    const ms = (yield* Clock.currentTimeMillis) - began
    const done = dryRun ? "differ from the history" : "rewritten from the history"
    if (!json)
      yield* remark(`${rebuilt.length} of ${plural(endpoints, "endpoint")} ${done}, in ${ms} ms`)
  })
).pipe(
  Command.withDescription(
    "Work out the health of all endpoints from the history, and store it where it differs. No worker may run meanwhile."
  )
)

const rebuiltText = ({ endpoint, gone, problem }: RebuiltEndpoint): string => {
  if (problem !== undefined) return `${endpoint}  cannot be made again: ${problem}`
  return gone.length === 0
    ? endpoint
    : `${endpoint}  paused: the history does not hold ${gone.join(", ")}; \`petrel endpoint set ${endpoint} ${gone.join(" ")}\`, then \`petrel endpoint resume ${endpoint}\``
}

const endpoints = Command.make(
  "endpoints",
  {
    by: byFlag,
    dryRun: isSet("dry-run", "Only say what would be rebuilt")
  },
  Effect.fnUntraced(function* ({ by, dryRun }) {
    const { json } = yield* petrel
    const rebuilt = yield* Effect.provide(rebuildEndpoints({ by, dryRun }), connected)
    for (const one of rebuilt) yield* report(one, rebuiltText(one))
    if (json) return
    if (rebuilt.length === 0) yield* remark("no endpoint was lost with a former bucket")
    else if (dryRun)
      yield* remark(`${plural(rebuilt.length, "entry", "entries")} would be made again`)
    else yield* remark(`${plural(rebuilt.length, "entry", "entries")} made again from the history`)
  })
).pipe(
  Command.withDescription(
    "Rebuild from the history the endpoints and settings of tenants that were lost with their bucket. Secrets, values of headers and paths of URLs are not in the history: an endpoint for which one is missing is named, and paused until that is set."
  )
)

/** Commands that rebuild data from the history. */
export const rebuild = Command.make("rebuild").pipe(
  Command.withDescription("Rebuild lost or damaged state from the history"),
  Command.withSubcommands([health, endpoints])
)
