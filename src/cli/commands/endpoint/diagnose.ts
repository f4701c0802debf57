import { styleText } from "node:util"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { endpointLabel } from "../../../domain/endpoint.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { operatorNamed } from "../../../operations/caller.ts"
import {
  Diagnosis,
  diagnoseEndpoint
} from "../../../operations/endpoints/diagnosis/diagnose-endpoint.ts"
import type { Check, CheckResult } from "../../../operations/endpoints/diagnosis/findings.ts"
import { endpointArgument, thisUser } from "../../flags/shared.ts"
import { labelled, screenWidth } from "../../format/screen.ts"
import { connected, report } from "../../root-command.ts"
import { coloured } from "../../terminal/stdout.ts"

interface DiagnosisViewOptions {
  readonly colour: boolean
  /** Columns of the screen. (Default: no limit) */
  readonly width: number | undefined
}

const marks: Readonly<
  Record<CheckResult, readonly [text: string, colour: "cyan" | "green" | "red" | "yellow"]>
> = {
  ok: ["ok     ", "green"],
  unknown: ["unknown", "cyan"],
  warning: ["warning", "yellow"],
  problem: ["problem", "red"]
}

/** The longest name of a check. */
const nameWidth = "dead letters".length

const checkLines = (
  { name, result, says }: Check,
  { colour, width }: DiagnosisViewOptions
): ReadonlyArray<string> => {
  const [mark, hue] = marks[result]
  const [first = "", ...rest] = labelled(`${mark}  ${name.padEnd(nameWidth)}  `, says, width)
  const painted = colour
    ? styleText(hue, mark, { validateStream: false }) + first.slice(mark.length)
    : first
  return [painted, ...rest]
}

/** Returns a diagnosis for people: one check after the other, and what to do. */
const diagnosisLines = (
  diagnosis: Diagnosis,
  options: DiagnosisViewOptions
): ReadonlyArray<string> => {
  const { advice, checks, url } = diagnosis
  const what =
    advice.length === 0
      ? ["Nothing is wrong, as far as can be seen from here."]
      : [
          "What to do:",
          ...advice.flatMap((text, index) => labelled(`  ${index + 1}. `, text, options.width))
        ]
  return [
    `${endpointLabel(diagnosis)} → ${url}`,
    ...checks.flatMap((check) => checkLines(check, options)),
    "",
    ...what
  ]
}

const encode = jsonOf(Diagnosis)

export const diagnose = Command.make(
  "diagnose",
  { name: endpointArgument },
  Effect.fnUntraced(function* ({ name }) {
    const found = yield* diagnoseEndpoint(name, operatorNamed(thisUser())).pipe(
      Effect.provide(connected)
    )
    const view = { colour: coloured(), width: screenWidth() }
    yield* report(encode(found), diagnosisLines(found, view).join("\n"))
  })
).pipe(
  Command.withDescription(
    "Find out why an endpoint gets nothing or fails, and what to do. Looks at its state, events and failures, and connects to its receiver without sending anything"
  ),
  Command.withExamples([{ command: "petrel endpoint diagnose acme/billing" }])
)
