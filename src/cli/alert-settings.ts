import { Result, type Schema } from "effect"
import { readJson } from "./json-text.ts"
import { decoded } from "./schema-problems.ts"

/** Parses `off`, or alert thresholds as JSON. Fails with all problems found. */
export const readAlertChoice = <A>(
  flag: string,
  text: string,
  schema: Schema.ConstraintDecoder<A> & { readonly fields: object }
): Result.Result<A | "off", ReadonlyArray<string>> => {
  if (text.trim() === "off") return Result.succeed("off")
  const expected = `off, or thresholds as JSON such as '{"successWarnPercent":98}'`
  return Result.flatMap(readJson(flag, text, expected), (json) =>
    Result.mapError(decoded(schema, json, Object.keys(schema.fields)), (problems) => [
      `${flag}: ${problems.join(", ")}`
    ])
  )
}
