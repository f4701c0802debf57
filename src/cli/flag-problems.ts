import { Result, type Schema } from "effect"
import { readInput } from "../operations/input.ts"
import type { Problem } from "../operations/problem.ts"

/** Fields whose flags take JSON: what is wrong inside follows a colon. */
const jsonFields: ReadonlySet<string> = new Set(["retry", "circuit", "alerts", "set"])

/** Returns the command line's form of a field's name: `max-in-flight` for `maxInFlight`. */
export const settingName = (field: string): string =>
  field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Fields that are named otherwise on the command line. */
const otherNames: ReadonlyMap<string, string> = new Map([
  // It comes from a file, standard input or a flag.
  ["secret", "the secret"],
  ["tenant", "TENANT"],
  ["type", "TYPE"]
])

const flagOf = (field: string): string => otherNames.get(field) ?? `--${settingName(field)}`

/** Replaces the names of fields in backticks by their flags. */
export const withFlags = (message: string): string =>
  message.replaceAll(/`([a-z]\w*)`/g, (_, field: string) => flagOf(field))

/**
 * Words problems of fields as problems of flags: `--max-in-flight 0 must be between 1 and 1000`.
 * All that is wrong within the JSON of one flag is one sentence.
 *
 * @param headerFlag the flag that the problems of headers are about.
 */
export const flagProblems = (
  problems: ReadonlyArray<Problem>,
  headerFlag = "--header"
): ReadonlyArray<string> => {
  const sentences = new Map<string, ReadonlyArray<string>>()
  for (const { field, message } of problems) {
    const [first = "", ...rest] = field.split(".")
    const text = withFlags(message)
    if (jsonFields.has(first)) {
      const subject = `${flagOf(first)}: `
      const part = [...rest, ""].join(".").replace(/\.$/, " ")
      sentences.set(subject, [...(sentences.get(subject) ?? []), `${part}${text}`])
    } else if (first === "") sentences.set(text, [""])
    else if (first === "headers")
      sentences.set(`${headerFlag} ${JSON.stringify(rest.join("."))} ${text}`, [""])
    else sentences.set(`${flagOf(first)} ${text}`, [""])
  }
  return [...sentences].map(([subject, parts]) => `${subject}${parts.join(", ")}`)
}

/** Decodes the value of a field's flag. Fails with sentences about the flag. */
export const readField = <A>(
  field: string,
  schema: Schema.ConstraintDecoder<A>,
  value: unknown
): Result.Result<A, ReadonlyArray<string>> =>
  Result.mapError(readInput(schema, value), (problems) =>
    flagProblems(
      problems.map((problem) => ({
        ...problem,
        field: problem.field === "" ? field : `${field}.${problem.field}`
      }))
    )
  )
