import { isProblem } from "../src/client/client.ts"
import { problemText } from "./data.ts"
import { type Field, placeProblems, type Typed } from "./fields.ts"

/** What is wrong with what was typed: by field, and what is about none of them. */
export interface Wrong {
  readonly placed: Typed
  readonly other: ReadonlyArray<string>
}

export const nothingWrong: Wrong = { placed: {}, other: [] }

/** Returns what a failure says of a form. */
export const wrongIn = (fields: ReadonlyArray<Field>, error: unknown): Wrong =>
  isProblem(error, "invalid-request") && error.errors.length > 0
    ? placeProblems(fields, error.errors)
    : { placed: {}, other: [problemText(error)] }
