import { Result, type Schema } from "effect"
import { type ForwardHeadersPatch, forwardNameProblem } from "../../domain/forwarded-headers.ts"
import { readField, readJson, shown } from "./flag-problems.ts"
import { repeated } from "./shared.ts"

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

/** The flag that removes a header from those that are forwarded. */
export const noForwardHeader = repeated(
  "no-forward-header",
  "NAME",
  "Forwards this header no more; may be repeated"
)

/**
 * Parses the names of headers to forward, and to forward no more. Fails with the problems of all.
 */
const readForwarded = (
  given: ReadonlyArray<string>,
  removed: ReadonlyArray<string>
): Result.Result<ForwardHeadersPatch, ReadonlyArray<string>> => {
  const [names, gone] = [given, removed].map(
    (list) => new Set(list.map((name) => name.trim().toLowerCase()))
  )
  const problemsOf = (flag: string, list: Iterable<string>) =>
    [...list].flatMap((name) => {
      const problem = forwardNameProblem(name)
      return problem === undefined ? [] : [`${flag} ${shown(name)} ${problem}`]
    })
  const problems = [
    ...problemsOf("--forward-header", names ?? []),
    ...problemsOf("--no-forward-header", gone ?? []),
    ...[...(names ?? [])].flatMap((name) =>
      gone?.has(name) === true
        ? [`--forward-header and --no-forward-header exclude each other: both name ${shown(name)}`]
        : []
    )
  ]
  if (problems.length > 0) return Result.fail(problems)
  return Result.succeed({
    ...Object.fromEntries([...(names ?? [])].map((name) => [name, true] as const)),
    ...Object.fromEntries([...(gone ?? [])].map((name) => [name, null] as const))
  })
}

/** Makes the flag that names headers of the publisher to forward. */
export const forwardFlag = (description: string) => ({
  flag: () => ({ forwardHeader: repeated("forward-header", "NAME", description) }),
  read: ({
    forwardHeader,
    noForwardHeader = []
  }: {
    readonly forwardHeader: ReadonlyArray<string>
    readonly noForwardHeader?: ReadonlyArray<string>
  }) => readForwarded(forwardHeader, noForwardHeader)
})
