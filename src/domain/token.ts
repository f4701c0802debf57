import { Schema } from "effect"
import { isToken, tokenExpected } from "./token-rules.ts"

export { isToken, nobody } from "./token-rules.ts"

/** The pattern of tokens without what is reserved, as JSON Schema has it. */
const namePattern = "^(?!_$)[A-Za-z0-9_-]{1,64}$"

/** A tenant or endpoint name: one subject token. */
export const Token = Schema.String.check(
  Schema.makeFilter((text: string) => (isToken(text) ? undefined : tokenExpected), {
    toJsonSchema: () => ({ pattern: namePattern })
  })
)
