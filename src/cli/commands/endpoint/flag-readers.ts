import { Result } from "effect"
import { Endpoint } from "../../../domain/endpoint.ts"
import type { HeaderNames, Identity } from "../../../domain/header-names.ts"
import { headerNameProblem, IdentityHeaderName, identities } from "../../../domain/header-names.ts"
import { MetadataValue, readMetadataEntry } from "../../../domain/metadata.ts"
import { RetryPolicy } from "../../../domain/retry-policy.ts"
import type { RateLimit } from "../../../domain/settings/endpoint-table.ts"
import { typeFilterProblem } from "../../../domain/type-filter.ts"
import { NewEndpoint, RetryChoice } from "../../../operations/endpoints/endpoint-settings.ts"
import { readInput } from "../../../operations/input.ts"
import { rateExpected, readRate } from "../../../policy/rate.ts"
import { readField, readJson, shown } from "../../flags/flag-problems.ts"
import { listed, type Read } from "../../flags/setting-flags.ts"

const { fields } = NewEndpoint

/** Reads event types with commas between them. */
export const readTypes = (text: string): Read<NewEndpoint["types"]> => {
  const filters = listed(text)
  return filters.length === 0
    ? Result.fail([`--types ${shown(text)} must be event types such as 'invoice.>,*.created'`])
    : readField("types", fields.types, filters)
}

/** Reads a rate such as `20/s burst 40`. */
export const readRateLimit = (text: string): Read<RateLimit> => {
  const rate = readRate(text)
  return rate === undefined
    ? Result.fail([`--rate ${shown(text)} ${rateExpected}`])
    : Result.succeed(rate)
}

/** Reads settings of a circuit, as JSON. */
export const readCircuit = (text: string): Read<NewEndpoint["circuit"]> =>
  Result.flatMap(readJson("--circuit", text, `settings as JSON such as '{"failures":5}'`), (json) =>
    readField("circuit", fields.circuit, json)
  )

/** Reads the name of a preset, or a policy as JSON. */
export const readRetry = (text: string): Read<RetryChoice> =>
  /^\s*[[{]/.test(text)
    ? Result.flatMap(
        readJson("--retry", text, "the name of a preset or a policy as JSON"),
        (json) => readField("retry", RetryPolicy, json)
      )
    : readField("retry", RetryChoice, text.trim())

/** Reads `filter=policy` each. */
export const readRetryFor = (texts: ReadonlyArray<string>): Read<Record<string, RetryChoice>> => {
  const found = new Map<string, RetryChoice>()
  const problems: Array<string> = []
  for (const text of texts) {
    const equals = text.indexOf("=")
    const filter = text.slice(0, equals).trim()
    const problem = typeFilterProblem(filter)
    const flag = `--retry-for ${shown(filter)}`
    if (equals < 1)
      problems.push(
        `--retry-for ${shown(text)} must be event types and their policy such as 'invoice.>=stripe'`
      )
    else if (problem !== undefined) problems.push(`${flag} ${problem}`)
    else if (found.has(filter)) problems.push(`${flag} was given twice`)
    else
      Result.match(readRetry(text.slice(equals + 1)), {
        onSuccess: (retry) => found.set(filter, retry),
        onFailure: (reasons) =>
          problems.push(...reasons.map((reason) => reason.replace("--retry", flag)))
      })
  }
  return problems.length === 0 ? Result.succeed(Object.fromEntries(found)) : Result.fail(problems)
}

/** Reads `key=value` each. */
export const readMetadata = (texts: ReadonlyArray<string>): Read<Record<string, string>> => {
  const found = new Map<string, string>()
  const problems: Array<string> = []
  for (const text of texts) {
    const entry = readMetadataEntry(text)
    const flag = `--metadata ${shown(text)}`
    if (entry === undefined)
      problems.push(`${flag} must be a key and its value such as 'customer=42'`)
    else if (found.has(entry[0])) problems.push(`--metadata ${shown(entry[0])} was given twice`)
    else {
      const value = readField("metadata", MetadataValue, entry[1])
      if (Result.isFailure(value)) problems.push(...value.failure)
      else found.set(...entry)
    }
  }
  return problems.length === 0 ? Result.succeed(Object.fromEntries(found)) : Result.fail(problems)
}

/** Reads the names of headers. Those that are not given are left out. */
export const readHeaderNames = (
  given: Readonly<Partial<Record<Identity, string | undefined>>>
): Read<HeaderNames> => {
  const names: { -readonly [Key in keyof HeaderNames]: HeaderNames[Key] } = {}
  const problems: Array<string> = []
  for (const identity of identities) {
    const text = given[identity]
    if (text === undefined) continue
    const read = readField(`headerNames.${identity}`, IdentityHeaderName, text.trim())
    if (Result.isFailure(read)) problems.push(...read.failure)
    else names[identity] = read.success
  }
  return problems.length === 0 ? Result.succeed(names) : Result.fail(problems)
}

const headerFlag = "--header"
const headerFileFlag = "--header-file"

/** Reads `name: value` each, from flags and from the lines of a file. */
export const readHeaders = ({
  header,
  headerLines
}: {
  readonly header: ReadonlyArray<string>
  readonly headerLines: ReadonlyArray<string>
}): Read<Record<string, string>> => {
  const headers = new Map<string, readonly [name: string, value: string]>()
  const problems: Array<string> = []
  const read = (flag: typeof headerFlag | typeof headerFileFlag, line: string) => {
    const colon = line.indexOf(":")
    const name = line.slice(0, colon).trim()
    const value = line.slice(colon + 1).trim()
    if (colon < 1) {
      // The line is not shown, since it may contain a credential.
      problems.push(
        flag === headerFlag
          ? "--header must be 'name: value'"
          : "--header-file must have lines such as 'name: value', and one is not"
      )
      return
    }
    const problem = headerNameProblem(name)
    if (problem !== undefined) problems.push(`${flag} ${shown(name)} ${problem}`)
    else if (Result.isFailure(readInput(Endpoint.fields.headers, { [name]: value })))
      problems.push(`${flag} ${shown(name)} must have a value of up to 4096 Latin-1 characters`)
    else if (headers.has(name.toLowerCase()))
      problems.push(`${flag} ${shown(name)} was given twice`)
    headers.set(name.toLowerCase(), [name, value])
  }
  for (const line of headerLines) read(headerFileFlag, line)
  for (const line of header) read(headerFlag, line)
  return problems.length === 0
    ? Result.succeed(Object.fromEntries(headers.values()))
    : Result.fail(problems)
}
