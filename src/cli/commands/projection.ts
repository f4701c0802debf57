import { Clock, Effect } from "effect"
import { Command } from "effect/cli"
import { jsonOf } from "../../domain/timestamp.ts"
import { type Lag, ProjectionStatus } from "../../projection/delivery-log.ts"
import { rebuildRemotely, remoteStatus } from "../../projection/remote-log.ts"
import { plainText } from "../../text/plain-text.ts"
import { bytesText, localTimeMs, plural, spanText } from "../../text/quantities.ts"
import { labelled, screenWidth } from "../format/screen.ts"
import { connected, report } from "../root-command.ts"

const encode = jsonOf(ProjectionStatus)

/**
 * Says how far a projection is behind the history: `level with`, or `12 facts (3 s) behind`. Without
 * newer facts that are known, ms says for how long nobody has looked for them.
 */
export const lagText = ({ facts, ms }: Lag): string => {
  if (facts > 0) return `${plural(facts, "fact")} (${spanText(ms)}) behind`
  return ms === 0 ? "level with" : `not compared for ${spanText(ms)} with`
}

const states = {
  rebuilding: "reads the history, and is not level with it yet",
  following: "follows the history",
  stopped: "has stopped"
} as const

const statusLines = (status: ProjectionStatus, now: number): ReadonlyArray<string> => {
  const { bytes, data, lag, oldest, position, problem, repeatedAttempts, rows, state, waiting } =
    status
  const since = oldest === null ? "" : `, since ${localTimeMs(oldest, now)}`
  return [
    `the projection ${states[state]}`,
    ...(problem === null ? [] : labelled("  problem   ", plainText(problem), screenWidth())),
    `  position  fact ${position}, ${lagText(lag)} the history`,
    `  rows      ${rows} ended${since}; ${waiting} waiting`,
    `  repeats   ${plural(repeatedAttempts, "attempt")} recorded again`,
    `  files     ${bytesText(bytes)} in ${plainText(data)}`
  ]
}

const status = Command.make(
  "status",
  {},
  Effect.fnUntraced(function* () {
    const found = yield* Effect.provide(remoteStatus, connected)
    const now = yield* Clock.currentTimeMillis
    yield* report(encode(found), statusLines(found, now).join("\n"))
  })
).pipe(Command.withDescription("Show how far the log of deliveries is, and what it keeps"))

const rebuild = Command.make(
  "rebuild",
  {},
  Effect.fnUntraced(function* () {
    yield* Effect.provide(rebuildRemotely, connected)
    yield* report(
      { rebuilding: true },
      "The delivery log reads the history again. What it has of older facts it keeps; petrel projection status shows how far it is."
    )
  })
).pipe(
  Command.withDescription(
    "Rebuild the log of deliveries from the history. Rows of facts that the history no longer has are kept."
  )
)

/** Commands for the delivery log of a running console. */
export const projection = Command.make("projection").pipe(
  Command.withDescription("Show the state of a console's log of deliveries, or rebuild it"),
  Command.withSubcommands([status, rebuild])
)
