import { styleText } from "node:util"
import type { Diagnosis } from "../../../operations/endpoints/diagnosis/diagnose-endpoint.ts"
import type { Check, CheckResult } from "../../../operations/endpoints/diagnosis/findings.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { labelled } from "../../format/screen.ts"

export interface DiagnosisViewOptions {
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
export const diagnosisLines = (
  diagnosis: Diagnosis,
  options: DiagnosisViewOptions
): ReadonlyArray<string> => {
  const { advice, checks, url } = diagnosis
  const what =
    advice.length === 0
      ? ["Nothing is wrong that can be seen from here."]
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
