import { Schema } from "effect"

const tokenPattern = /^[A-Za-z0-9_-]{1,64}$/

/** The token that stands where a subject needs one and there is none: no endpoint, no (valid) tenant. */
export const nobody = "_"

/** True for a name that may be one token of a subject: `[A-Za-z0-9_-]{1,64}`, and not the reserved `_`. */
export const isToken = (text: string): boolean => tokenPattern.test(text) && text !== nobody

/** A tenant or endpoint name: one subject token. */
export const Token = Schema.String.check(
  Schema.makeFilter((text: string) =>
    isToken(text) ? undefined : "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  )
)
