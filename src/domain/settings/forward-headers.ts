import { Schema } from "effect"
import { forwardNameProblem } from "../header-names.ts"
import { byName, emptied } from "./setting.ts"

/** Upper bound of the headers that an endpoint or a tenant forwards: each is part of each message. */
const maxForwardHeaders = 16

const ForwardName = Schema.String.check(
  Schema.makeFilter(
    (name: string) =>
      forwardNameProblem(name) ??
      (name === name.toLowerCase() ? undefined : "must be in lower case")
  )
)

/** Names of the publisher's headers that receivers get, in lower case, each once. */
const ForwardHeaders = Schema.Array(ForwardName).check(
  Schema.makeFilter((names: ReadonlyArray<string>) => {
    if (new Set(names).size < names.length) return "must name each header once"
    return names.length <= maxForwardHeaders
      ? undefined
      : `must be at most ${maxForwardHeaders} headers, not ${names.length}`
  })
)
type ForwardHeaders = typeof ForwardHeaders.Type

const changes = byName({
  value: Schema.Literal(true),
  nameProblem: forwardNameProblem,
  fold: (name) => name.toLowerCase(),
  unknown: "is not forwarded, so that it cannot be removed",
  most: {
    count: maxForwardHeaders,
    sentence: `at most ${maxForwardHeaders} headers are forwarded: each is stored with each delivery`
  }
})

/**
 * Headers of the publisher to forward, by name: true adds one, null removes one. Names are compared
 * without case.
 */
export type ForwardHeadersPatch = NonNullable<typeof changes.patch.Type>

const entriesOf = (names: ForwardHeaders = []) =>
  Object.fromEntries(names.map((name) => [name, true as const]))

/** Makes the setting that names headers of the publisher to forward. */
export const forwarded = (text: string) => ({
  ...emptied(ForwardHeaders, { text, usual: "none" }),
  given: changes.patch,
  patch: changes.patch,
  removal: changes.removal,
  after: (before: ForwardHeaders | undefined, patch: ForwardHeadersPatch = {}): ForwardHeaders => {
    const lower = Object.entries(patch).map(([name, change]) => [name.toLowerCase(), change])
    return Object.keys(changes.after(entriesOf(before), Object.fromEntries(lower)))
  },
  problems: (
    field: string,
    before: ForwardHeaders | undefined,
    patch: ForwardHeadersPatch | undefined
  ) => changes.problems(field, entriesOf(before), patch)
})
