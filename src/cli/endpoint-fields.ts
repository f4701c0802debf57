import { Duration, Result, Schema } from "effect"
import type { AlertChoice } from "../domain/alert.ts"
import { AlertSettings, Contact } from "../domain/alert.ts"
import { Circuit } from "../domain/circuit.ts"
import type { RateLimit, Scheme } from "../domain/endpoint.ts"
import { Endpoint } from "../domain/endpoint.ts"
import { RetryPolicy } from "../domain/retry-policy.ts"
import { TypeFilter } from "../domain/type-filter.ts"
import { resolveRetry } from "../policy/presets.ts"
import { readAlertChoice } from "./alert-settings.ts"
import { durationExpected, readDuration } from "./duration.ts"
import { readJson, shown } from "./json-text.ts"
import { rateExpected, readRate } from "./rate.ts"
import { decoded } from "./schema-problems.ts"

/** The command line's settings of an endpoint, as text. */
export interface EndpointFlags {
  readonly url: string | undefined
  readonly types: string | undefined
  readonly secret: string | undefined
  readonly sign: string | undefined
  readonly signatureHeader: string | undefined
  readonly retry: string | undefined
  readonly circuit: string | undefined
  readonly maxInFlight: string | undefined
  readonly adapt: string | undefined
  readonly rate: string | undefined
  readonly timeout: string | undefined
  readonly redirects: string | undefined
  readonly contact?: string | undefined
  readonly alerts?: string | undefined
  readonly operational?: boolean | undefined
  /** `name: value` each. */
  readonly header: ReadonlyArray<string>
  /** Header lines from a file. */
  readonly headerLines?: ReadonlyArray<string> | undefined
}

/** The parsed settings. Each is valid by itself. */
export interface EndpointFields {
  readonly url: string | undefined
  readonly types: Endpoint["types"] | undefined
  readonly secret: string | undefined
  readonly sign: Scheme | undefined
  readonly signatureHeader: string | undefined
  readonly retry: string | RetryPolicy | undefined
  readonly circuit: Circuit | undefined
  readonly maxInFlight: number | undefined
  readonly adapt: boolean | undefined
  readonly rate: RateLimit | undefined
  readonly timeout: Duration.Duration | undefined
  readonly redirects: number | undefined
  readonly contact?: string | undefined
  readonly alerts?: AlertChoice | undefined
  /** Also subscribes to its tenant's alerts. */
  readonly operational?: boolean | undefined
  readonly headers: Readonly<Record<string, string>>
}

type Problems = ReadonlyArray<string>
type Read<A> = Result.Result<A, Problems>

const fields = Endpoint.fields

const prefixed =
  (flag: string) =>
  (problems: Problems): Problems =>
    problems.map((problem) => `${flag} ${problem}`)

const readTypes = (text: string): Read<Endpoint["types"]> => {
  const filters = [...new Set(text.split(",").map((filter) => filter.trim()))].filter(
    (filter) => filter !== ""
  )
  if (filters.length === 0)
    return Result.fail([`--types ${shown(text)} must be event types such as 'invoice.>,*.created'`])
  return Result.mapError(decoded(Schema.NonEmptyArray(TypeFilter), filters), (problems) =>
    problems.map((problem) => `--types ${problem.replace(/^\d+ /, "")}`)
  )
}

const readAdapt = (text: string): Read<boolean> =>
  text === "on" || text === "off"
    ? Result.succeed(text === "on")
    : Result.fail([`--adapt ${shown(text)} must be on or off`])

const readNumber =
  (flag: string, schema: typeof fields.maxInFlight | typeof fields.redirects) =>
  (text: string): Read<number> =>
    /^-?\d+$/.test(text.trim())
      ? Result.mapError(decoded(schema, Number(text)), prefixed(flag))
      : Result.fail([`${flag} ${shown(text)} must be a whole number`])

const readTimeout = (text: string): Read<Duration.Duration> => {
  const duration = readDuration(text)
  return duration === undefined || Duration.toMillis(duration) < 1
    ? Result.fail([`--timeout ${shown(text)} ${durationExpected}`])
    : Result.succeed(duration)
}

const readRateFlag = (text: string): Read<RateLimit> => {
  const rate = readRate(text)
  return rate === undefined
    ? Result.fail([`--rate ${shown(text)} ${rateExpected}`])
    : Result.succeed(rate)
}

const readCircuit = (text: string): Read<Circuit> =>
  Result.flatMap(readJson("--circuit", text, `settings as JSON such as '{"failures":5}'`), (json) =>
    Result.mapError(decoded(Circuit, json, Object.keys(Circuit.fields)), (problems) => [
      `--circuit: ${problems.join(", ")}`
    ])
  )

const readRetry = (text: string): Read<string | RetryPolicy> => {
  if (!/^\s*[[{]/.test(text))
    return Result.map(
      Result.mapError(resolveRetry(text.trim()), ({ message }) => [`--retry: ${message}`]),
      () => text.trim()
    )
  return Result.flatMap(
    readJson("--retry", text, "the name of a preset or a policy as JSON"),
    (json) =>
      Result.mapError(decoded(RetryPolicy, json, Object.keys(RetryPolicy.fields)), (problems) => [
        `--retry: ${problems.join(", ")}`
      ])
  )
}

const headerFlag = "--header"
const headerFileFlag = "--header-file"

const readHeaders = ({
  header,
  headerLines = []
}: Pick<EndpointFlags, "header" | "headerLines">): Read<Record<string, string>> => {
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
    const named = decoded(fields.signatureHeader, name)
    if (Result.isFailure(named)) problems.push(...prefixed(flag)(named.failure))
    else if (Result.isFailure(decoded(fields.headers, { [name]: value })))
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

/** Parses all flags of an endpoint. Fails with the problems of all invalid flags. */
export const readFields = (flags: EndpointFlags): Read<EndpointFields> => {
  const problems: Array<string> = []
  const read = <A>(text: string | undefined, parse: (text: string) => Read<A>): A | undefined =>
    text === undefined ? undefined : taken(parse(text))
  const taken = <A>(result: Read<A>): A | undefined => {
    if (Result.isSuccess(result)) return result.success
    problems.push(...result.failure)
    return undefined
  }
  const found: EndpointFields = {
    url: read(flags.url, (text) => Result.mapError(decoded(fields.url, text), prefixed("--url"))),
    types: read(flags.types, readTypes),
    secret: flags.secret,
    sign: read(flags.sign, (text) =>
      Result.mapError(decoded(fields.sign, text), prefixed("--sign"))
    ),
    signatureHeader: read(flags.signatureHeader, (text) =>
      Result.mapError(decoded(fields.signatureHeader, text), prefixed("--signature-header"))
    ),
    retry: read(flags.retry, readRetry),
    circuit: read(flags.circuit, readCircuit),
    maxInFlight: read(flags.maxInFlight, readNumber("--max-in-flight", fields.maxInFlight)),
    adapt: read(flags.adapt, readAdapt),
    rate: read(flags.rate, readRateFlag),
    timeout: read(flags.timeout, readTimeout),
    redirects: read(flags.redirects, readNumber("--redirects", fields.redirects)),
    contact: read(flags.contact, (text) =>
      Result.mapError(decoded(Contact, text), prefixed("--contact"))
    ),
    alerts: read(flags.alerts, (text) => readAlertChoice("--alerts", text, AlertSettings)),
    operational: flags.operational,
    headers: taken(readHeaders(flags)) ?? {}
  }
  return problems.length === 0 ? Result.succeed(found) : Result.fail(problems)
}
