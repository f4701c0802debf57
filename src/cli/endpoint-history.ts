import { Clock, Effect } from "effect"
import type { Endpoint } from "../domain/endpoint.ts"
import { getEndpoint } from "../endpoints/endpoint-store.ts"
import type { ConfigurationStep } from "../history/configuration-story.ts"
import { readStory } from "../history/configuration-story.ts"
import { askedBy, plainText } from "../history/line.ts"
import { withWords } from "./duration.ts"
import { additionTexts, differenceTexts } from "./endpoint-difference.ts"
import { moment } from "./endpoint-health.ts"
import { petrel } from "./root-command.ts"
import { labelled, screenWidth } from "./screen.ts"
import { print } from "./stdout.ts"
import { remark } from "./terminal.ts"

const words: Record<ConfigurationStep["change"], string> = {
  added: "added",
  changed: "changed",
  removed: "removed",
  unreadable: "made unreadable"
}

const textsOf = (
  { change, differences }: ConfigurationStep,
  now: number
): ReadonlyArray<string> => {
  if (change === "added") return additionTexts(differences, now)
  return change === "changed" ? differenceTexts(differences, now) : []
}

const stepLines = (
  step: ConfigurationStep,
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
export const showHistory = Effect.fnUntraced(function* ({ id, tenant }: Name) {
  const { json } = yield* petrel
  const story = yield* readStory(tenant, id)
  if (story.length === 0) {
    // Fails if there is no such endpoint.
    yield* getEndpoint(tenant, id)
    return yield* remark(untold(`${tenant}/${id}`))
  }
  const now = yield* Clock.currentTimeMillis
  const width = screenWidth()
  for (const step of story) {
    const lines = json
      ? [JSON.stringify(withWords({ tenant, id, ...step }))]
      : stepLines(step, now, width)
    yield* Effect.forEach(lines, print, { discard: true })
  }
})

type Name = Pick<Endpoint, "tenant" | "id">

/** Returns the remark for an endpoint without recorded changes. */
export const untold = (label: string): string =>
  `no change of ${label} is told yet: a worker tells of what it finds when it starts`
