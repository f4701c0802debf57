import { Clock, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import type { Survey } from "../delivery/introspection/survey.ts"
import { readSurvey } from "../delivery/introspection/survey.ts"
import { isSet } from "./endpoint-flags.ts"
import { Refused } from "./refused.ts"
import { connected, petrel } from "./root-command.ts"
import { screenHeight, screenWidth } from "./screen.ts"
import { untilStopped } from "./signals.ts"
import { statusJson } from "./status-json.ts"
import { newsOf } from "./status-news.ts"
import { statusLines } from "./status-view.ts"
import { clearScreen, print, redraw } from "./stdout.ts"
import { coloured } from "./terminal.ts"

const pause = "2 seconds"
/** JetStream's error code while its servers cannot elect a leader. */
const unavailable = 10008

/** Reads the survey. Fails with what to do if the cluster does not answer at all. */
const survey = readSurvey.pipe(
  Effect.catchIf(
    (error) => error._tag === "BrokerError" && error.code === unavailable,
    () =>
      new Refused({
        message:
          "the broker's cluster has no leader, so nothing is stored or delivered: more than half of its servers must run"
      })
  )
)

const linesOf = (survey: Survey): ReadonlyArray<string> =>
  statusLines(survey, { colour: coloured(), width: screenWidth(), height: screenHeight() })

const clear = Effect.suspend(() => (screenWidth() === undefined ? Effect.void : clearScreen))

const show = Effect.fnUntraced(function* (lines: ReadonlyArray<string>) {
  yield* screenWidth() === undefined ? print(`${lines.join("\n")}\n`) : redraw(lines)
})

const watchOnce = Effect.gen(function* () {
  const { json } = yield* petrel
  yield* survey.pipe(
    Effect.flatMap((found) =>
      json ? print(JSON.stringify(statusJson(found))) : show(linesOf(found))
    ),
    Effect.catchTag(["BrokerError", "Refused"], ({ message }) =>
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
    if (check && watch)
      return yield* new Refused({ message: "--check looks once: leave out --watch" })
    if (watch) {
      const again = Effect.forever(Effect.andThen(watchOnce, Effect.sleep(pause)))
      return yield* clear.pipe(
        Effect.when(Effect.succeed(!json)),
        Effect.andThen(again),
        Effect.provide(connected),
        untilStopped
      )
    }
    const found = yield* Effect.provide(survey, connected)
    if (json) yield* print(JSON.stringify(statusJson(found)))
    else for (const line of linesOf(found)) yield* print(line)
    const { problems } = newsOf(found)
    if (check && problems.length > 0)
      return yield* new Refused({ message: problems.map(({ text }) => text).join("; ") })
  })
).pipe(
  Command.withDescription("Show how the system is, and what to do where it is not well"),
  Command.withShortDescription("Show how the system is")
)
