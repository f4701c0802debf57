import { Result, type Schema } from "effect"
import { readField } from "./flag-problems.ts"
import { readJson } from "./json-text.ts"

/** Parses `off`, or alert thresholds as JSON. Fails with all problems found. */
export const readAlertChoice = <A>(
  field: "alerts" | "set",
  text: string,
  schema: Schema.ConstraintDecoder<A>
): Result.Result<A | "off", ReadonlyArray<string>> => {
  if (text.trim() === "off") return Result.succeed("off")
  const expected = `off, or thresholds as JSON such as '{"successWarnPercent":98}'`
  return Result.flatMap(readJson(`--${field}`, text, expected), (json) =>
    readField(field, schema, json)
  )
}
