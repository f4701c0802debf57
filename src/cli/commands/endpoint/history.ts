import { Clock, Effect } from "effect"
import { askedBy, plainText } from "../../../history/line.ts"
import type { EndpointName } from "../../../operations/endpoints/endpoint-settings.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { type EndpointStep, endpointHistory } from "../../../operations/endpoints/endpoint-story.ts"
import { moment } from "../../../operations/text/time.ts"
import { labelled, screenWidth } from "../../format/screen.ts"
import { petrel } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { additionTexts, differenceTexts } from "./difference.ts"

const words: Record<EndpointStep["change"], string> = {
  added: "added",
  changed: "changed",
  removed: "removed",
  unreadable: "made unreadable"
}

const textsOf = ({ change, differences }: EndpointStep, now: number): ReadonlyArray<string> => {
  if (change === "added") return additionTexts(differences, now)
  return change === "changed" ? differenceTexts(differences, now) : []
}

const stepLines = (
  step: EndpointStep,
  now: number,
  width: number | undefined
): ReadonlyArray<string> => {
  const { at, change, revision } = step
  return [
    plainText(`${moment(at, now)}  revision ${revision}  ${askedBy(words[change], step)}`),
    ...textsOf(step, now).flatMap((text) => labelled("  ", text, width))
  ]
}

/** Prints all recorded changes of an endpoint, oldest first. Includes removed endpoints. */
export const showHistory = Effect.fnUntraced(function* (name: EndpointName) {
  const { json } = yield* petrel
  const steps = yield* endpointHistory(name)
  if (steps.length === 0)
    return yield* remark(
      `no change of ${endpointLabel(name)} is told yet: a worker tells of what it finds when it starts`
    )
  const now = yield* Clock.currentTimeMillis
  const width = screenWidth()
  for (const step of steps) {
    const lines = json ? [JSON.stringify(step)] : stepLines(step, now, width)
    yield* Effect.forEach(lines, print, { discard: true })
  }
})
