import { Clock, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import type { Status } from "../../../operations/status/status-report.ts"
import { readStatusAndDisk } from "../../../operations/status/status-report.ts"
import { isSet } from "../../flags/shared.ts"
import { screenHeight, screenWidth } from "../../format/screen.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, petrel } from "../../root-command.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { clearScreen, coloured, print, redraw } from "../../terminal/stdout.ts"
import { statusLines } from "./view.ts"

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
    Effect.flatMap((found) => (json ? print(JSON.stringify(found)) : show(linesOf(found)))),
    Effect.catchTag(["BrokerError", "NoLeader"], ({ message }) =>
      Effect.gen(function* () {
        const at = yield* Clock.currentTimeMillis
        const problem = { code: "broker-silent", text: message }
        if (json) yield* print(JSON.stringify({ at, problems: [problem] }))
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
      Flag.withDescription("Show it anew every 2 seconds, until it is stopped"),
      Flag.withDefault(false),
      Flag.withoutNegation
    ),
    check: isSet("check", "End with exit code 1 and the reasons where somebody must do something")
  },
  Effect.fnUntraced(function* ({ check, watch }) {
    const { json } = yield* petrel
    if (check && watch) return yield* refusal(["--check looks once: leave out --watch"])
    if (watch) {
      const again = Effect.forever(Effect.andThen(watchOnce, Effect.sleep(pause)))
      return yield* clear.pipe(
        Effect.when(Effect.succeed(!json)),
        Effect.andThen(again),
        Effect.provide(connected),
        untilStopped
      )
    }
    const found = yield* Effect.provide(readStatusAndDisk, connected)
    if (json) yield* print(JSON.stringify(found))
    else for (const line of linesOf(found)) yield* print(line)
    const { problems } = found
    if (check && problems.length > 0)
      return yield* new Refused({ message: problems.map(({ text }) => text).join("; ") })
  })
).pipe(
  Command.withDescription("Show how the system is, and what to do where it is not well"),
  Command.withShortDescription("Show how the system is")
)
