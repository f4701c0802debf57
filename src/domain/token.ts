import { Schema } from "effect"

const tokenPattern = /^[A-Za-z0-9_-]{1,64}$/
/** The same without what is reserved, as JSON Schema has it. */
const namePattern = "^(?!_$)[A-Za-z0-9_-]{1,64}$"

/** The placeholder token of a subject without an endpoint or without a valid tenant. */
export const nobody = "_"

/**
 * Returns true if the name is a valid subject token: `[A-Za-z0-9_-]{1,64}`, except the reserved
 * `_`.
 */
export const isToken = (text: string): boolean => tokenPattern.test(text) && text !== nobody

/** A tenant or endpoint name: one subject token. */
export const Token = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      isToken(text) ? undefined : "must be 1 to 64 letters, digits, - or _ (and not a lone _)",
    { toJsonSchema: () => ({ pattern: namePattern }) }
  )
)
