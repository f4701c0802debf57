import { Result, type Schema } from "effect"
import type { Problem } from "../../domain/problem.ts"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import type { Setting } from "../../domain/settings/setting.ts"
import { tenantSettings } from "../../domain/settings/tenant-table.ts"
import { readInput } from "../../operations/input.ts"

/** Quotes a text, truncated if it is long. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}…` : text)

/** Parses JSON. Fails with a sentence that says what is expected. */
export const readJson = (
  flag: string,
  text: string,
  expected: string
): Result.Result<unknown, ReadonlyArray<string>> =>
  Result.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) => [
      `${flag} ${shown(text)} must be ${expected}: ${error instanceof Error ? error.message : String(error)}`
    ]
  })

const namesOf = (choose: (setting: Setting) => boolean): ReadonlyArray<string> =>
  Object.entries<Setting>({ ...endpointSettings, ...tenantSettings }).flatMap(([name, setting]) =>
    choose(setting) ? [name] : []
  )

/** Fields whose flags are repeated, with a name that is a part of the field's. */
const namedFields: ReadonlySet<string> = new Set(
  namesOf(({ removal }) => removal === "null by name")
)

/**
 * Fields whose flags take JSON, as those of settings with parts that are changed as a whole: what
 * is wrong inside follows a colon.
 */
const jsonFields: ReadonlySet<string> = new Set([
  "set",
  ...namesOf(({ compared, removal }) => compared === "by part" && !removal.startsWith("null by"))
])

/** Returns the command line's form of a field's name: `max-in-flight` for `maxInFlight`. */
export const settingName = (field: string): string =>
  field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Fields that are named otherwise on the command line. */
const otherNames: ReadonlyMap<string, string> = new Map([
  // It comes from a file, standard input or a flag.
  ["secret", "the secret"],
  ["secrets", "the secret"],
  ["headerNames.id", "--id-header"],
  ["headerNames.type", "--type-header"],
  ["headerNames.timestamp", "--timestamp-header"]
])

/** A flag that is repeated names one of several. */
const flagOf = (field: string): string =>
  otherNames.get(field) ??
  `--${settingName(namedFields.has(field) ? field.replace(/s$/, "") : field)}`

/** Replaces fields in backticks by their flags. */
export const withFlags = (message: string): string =>
  message
    .replaceAll(/`([a-z][\w.]*)`/g, (_, field: string) => flagOf(field))
    .replaceAll(/\bfields\b/g, "flags")

/**
 * Words problems of fields as problems of flags: `--max-in-flight 0 must be between 1 and 1000`.
 * All that is wrong within the JSON of one flag is one sentence.
 *
 * @param names of fields that are named otherwise in this command; of a field whose flag is
 *   repeated, where the problem is about one of its parts.
 */
export const flagProblems = (
  problems: ReadonlyArray<Problem>,
  names: Readonly<Record<string, string>> = {}
): ReadonlyArray<string> => {
  const sentences = new Map<string, ReadonlyArray<string>>()
  for (const { field, message } of problems) {
    const [first = "", ...rest] = field.split(".")
    const text = withFlags(message)
    const isRepeated = namedFields.has(first)
    const isNamed = isRepeated && rest.length > 0
    const given = isNamed || !isRepeated ? names[first] : undefined
    const flag = given ?? otherNames.get(field) ?? flagOf(first)
    if (first === "") sentences.set(text, [""])
    else if (jsonFields.has(first)) {
      const part = rest.length === 0 ? text : `${rest.join(".")} ${text}`
      sentences.set(`${flag}: `, [...(sentences.get(`${flag}: `) ?? []), part])
    } else {
      const name = isNamed ? ` ${JSON.stringify(rest.join("."))}` : ""
      sentences.set(`${flag}${name} ${text}`, [""])
    }
  }
  return [...sentences].map(([subject, parts]) => `${subject}${parts.join("; ")}`)
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
