import { Schema } from "effect"
import { isToken } from "./token.ts"

/** Which ids are looked for: one, or all with a beginning. */
export interface IdFilter {
  readonly text: string
  readonly isBeginning: boolean
}

/** What a filter must be, for messages. */
export const idFilterExpected =
  "must be an endpoint's id such as billing, or its beginning and a *, such as billing-*"

/** Reads an id, or its beginning if the text ends with `*`; undefined where it is neither. */
export const readIdFilter = (text: string): IdFilter | undefined => {
  const isBeginning = text.endsWith("*")
  const named = isBeginning ? text.slice(0, -1) : text
  // A beginning may be what no id is: all of them begin with nothing, and some with a `_`.
  const isValid = isBeginning ? isToken(`${named}x`) || isToken(named) : isToken(named)
  return isValid ? { text: named, isBeginning } : undefined
}

/** An endpoint's id, or its beginning if it ends with `*`. */
export const EndpointIdFilter = Schema.String.check(
  Schema.makeFilter(
    (text: string) => (readIdFilter(text) === undefined ? idFilterExpected : undefined),
    { toJsonSchema: () => ({ pattern: "^(?:(?!_$)[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{0,64}\\*)$" }) }
  )
)

/** Returns true for an id that is looked for. */
export const isIdWanted = (id: string, { isBeginning, text }: IdFilter): boolean =>
  isBeginning ? id.startsWith(text) : id === text
