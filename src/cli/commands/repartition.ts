import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import type { Emptied, RepartitionStep } from "../../operations/repartition/repartition.ts"
import type { MoveCount } from "../../operations/repartition/survey.ts"
import { countText, plural } from "../../text/quantities.ts"
import { isSet } from "../flags/shared.ts"
import { connected, petrel, report } from "../root-command.ts"
import type { Bar } from "../terminal/progress.ts"
import { makeBar } from "../terminal/progress.ts"
import { print, remark } from "../terminal/stdout.ts"

const most = 256

const partitions = Argument.String("N").pipe(
  Argument.withDescription("The new number of partitions"),
  Argument.filterMap(
    (text) => {
      const number = /^\d{1,6}$/.test(text) ? Number(text) : 0
      return number >= 1 && number <= most ? Option.some(number) : Option.none()
    },
    () => `must be a whole number from 1 to ${most}`
  )
)

const sumOf = (all: ReadonlyArray<MoveCount>): number =>
  all.reduce((sum, { backlog, queue, schedules }) => sum + backlog + queue + schedules, 0)

const placesText = ({ backlog, queue, schedules }: MoveCount): string =>
  `${countText(queue)} in the queue, ${plural(schedules, "schedule")}, ${countText(backlog)} in backlogs`

const emptiedText = (emptied: Emptied): string => {
  const ended = emptied.ended === 0 ? "" : `; ${emptied.ended} that had ended were removed`
  return `partition ${emptied.partition}: moved ${placesText(emptied)}${ended}`
}

/** Returns the line of a step; undefined for steps that only the bar shows. */
const stepText = (step: RepartitionStep): string | undefined => {
  switch (step.event) {
    case "begun":
      return step.resumed
        ? `continuing the interrupted change from ${step.from} to ${plural(step.to, "partition")}`
        : `changing from ${step.from} to ${plural(step.to, "partition")}; no worker can start until it is done`
    case "waiting":
      return "an earlier run or a worker has died lately: waiting until its leases end, some 10 s"
    case "settled":
      return `what former workers had decided is carried out (${plural(step.decisions, "decision")} looked at)`
    case "counted":
      return `${plural(step.messages, "message")} to look at`
    case "emptied":
      return emptiedText(step)
    case "removed":
      return `removed partition ${step.partition}`
    case "looked-at":
      return undefined
  }
}

const draw = (bar: Bar, step: RepartitionStep): void => {
  if (step.event === "counted") bar.total(step.messages)
  else if (step.event === "looked-at")
    bar.advance(step.messages, `from partition ${step.partition}`)
  else if (step.event !== "emptied") bar.label(stepText(step) ?? "")
}

/** Imported on demand: other commands do not need the engine. */
const engine = Effect.promise(() => import("../../operations/repartition/repartition.ts"))

const plan = Effect.fnUntraced(function* (to: number) {
  const { planRepartition } = yield* engine
  const { from, moves } = yield* planRepartition(to)
  for (const move of moves)
    yield* report(
      { event: "would-move", ...move },
      `partition ${move.partition}: would move ${placesText(move)}`
    )
  const messages = sumOf(moves)
  yield* report(
    { event: "planned", from, to, messages },
    from === to
      ? `there are ${plural(to, "partition")} already: nothing to do`
      : `from ${from} to ${plural(to, "partition")}: ${plural(messages, "message")} to move; nothing was changed`
  )
})

const run = Effect.fnUntraced(function* (to: number) {
  const { json } = yield* petrel
  const bar = makeBar(json)
  let begun = false
  const tell = (step: RepartitionStep) => {
    begun ||= step.event === "begun"
    if (bar !== undefined) return Effect.sync(() => draw(bar, step))
    const text = stepText(step)
    return text === undefined
      ? Effect.void
      : Effect.ignore(print(json ? JSON.stringify(step) : text))
  }
  const clear = Effect.sync(() => bar?.clear())
  const { repartition } = yield* engine
  const { from, moved } = yield* repartition({ to, tell }).pipe(
    Effect.ensuring(clear),
    Effect.onInterrupt(() =>
      begun
        ? remark(
            `stopped; nothing is lost, and \`petrel repartition ${to}\` continues where it was`
          )
        : Effect.void
    )
  )
  const ended = moved.reduce((sum, emptied) => sum + emptied.ended, 0)
  const messages = sumOf(moved)
  yield* report(
    { event: "done", from, to, messages, ended },
    from === to
      ? `there are ${plural(to, "partition")} already: nothing to do`
      : `there are ${plural(to, "partition")} now instead of ${from}; ${plural(messages, "message")} moved. Start the workers again`
  )
})

/** Changes the number of partitions while no worker runs. */
export const repartition = Command.make(
  "repartition",
  {
    partitions,
    dryRun: isSet("dry-run", "Say what would be moved, and change nothing")
  },
  ({ dryRun, partitions }) => Effect.provide(dryRun ? plan(partitions) : run(partitions), connected)
).pipe(
  Command.withDescription("Change the number of partitions while no worker runs; nothing is lost"),
  Command.withExamples([
    { command: "petrel repartition 32 --dry-run", description: "What would be moved" },
    { command: "petrel repartition 32", description: "Run it again if it was interrupted" }
  ])
)
