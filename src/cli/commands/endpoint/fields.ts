import { Duration, Result } from "effect"
import { AlertSettings, Contact } from "../../../domain/alert.ts"
import { Endpoint } from "../../../domain/endpoint.ts"
import type { HeaderNames } from "../../../domain/header-names.ts"
import { headerNameProblem, IdentityHeaderName, identities } from "../../../domain/header-names.ts"
import { RetryPolicy } from "../../../domain/retry-policy.ts"
import { BodyFormat, type RateLimit } from "../../../domain/settings/endpoint-table.ts"
import { typeFilterProblem } from "../../../domain/type-filter.ts"
import type { NewEndpoint } from "../../../operations/endpoints/endpoint-settings.ts"
import { EndpointPatch, RetryChoice } from "../../../operations/endpoints/endpoint-settings.ts"
import { readInput } from "../../../operations/input.ts"
import { readAlertChoice } from "../../flags/alert-settings.ts"
import { durationExpected, readDuration } from "../../flags/duration.ts"
import { readField, settingName } from "../../flags/flag-problems.ts"
import { readForwarded } from "../../flags/forward-flags.ts"
import { readJson, shown } from "../../flags/json-text.ts"
import { rateExpected, readRate } from "../../format/rate.ts"

/** The command line's settings of an endpoint, as text. */
export interface EndpointFlags {
  readonly url: string | undefined
  readonly types: string | undefined
  readonly secret: string | undefined
  readonly sign: string | undefined
  readonly signatureHeader: string | undefined
  readonly idHeader?: string | undefined
  readonly typeHeader?: string | undefined
  readonly timestampHeader?: string | undefined
  readonly retry: string | undefined
  /** `filter=policy` each. */
  readonly retryFor?: ReadonlyArray<string>
  readonly circuit: string | undefined
  readonly maxInFlight: string | undefined
  readonly adapt: string | undefined
  readonly format?: string | undefined
  readonly rate: string | undefined
  readonly timeout: string | undefined
  readonly connectTimeout?: string | undefined
  readonly redirects: string | undefined
  readonly contact?: string | undefined
  readonly alerts?: string | undefined
  readonly operational?: boolean | undefined
  /** `name: value` each. */
  readonly header: ReadonlyArray<string>
  /** Names of the publisher's headers. */
  readonly forwardHeader?: ReadonlyArray<string> | undefined
  /** Names of those that are forwarded no more. */
  readonly noForwardHeader?: ReadonlyArray<string> | undefined
  /** Header lines from a file. */
  readonly headerLines?: ReadonlyArray<string> | undefined
}

/** The parsed settings. Each is valid by itself. */
export type EndpointFields = Omit<NewEndpoint, "url"> & Pick<EndpointPatch, "url">

type Read<A> = Result.Result<A, ReadonlyArray<string>>

const fields = EndpointPatch.fields

const readTypes = (text: string): Read<EndpointFields["types"]> => {
  const filters = [...new Set(text.split(",").map((filter) => filter.trim()))].filter(
    (filter) => filter !== ""
  )
  return filters.length === 0
    ? Result.fail([`--types ${shown(text)} must be event types such as 'invoice.>,*.created'`])
    : readField("types", fields.types, filters)
}

const readAdapt = (text: string): Read<boolean> =>
  text === "on" || text === "off"
    ? Result.succeed(text === "on")
    : Result.fail([`--adapt ${shown(text)} must be on or off`])

const readNumber =
  (field: "maxInFlight" | "redirects") =>
  (text: string): Read<number | undefined> =>
    /^-?\d+$/.test(text.trim())
      ? readField(field, fields[field], Number(text))
      : Result.fail([`--${settingName(field)} ${shown(text)} must be a whole number`])

const readTimeout =
  (field: "connectTimeout" | "timeout") =>
  (text: string): Read<Duration.Duration> => {
    const duration = readDuration(text)
    return duration === undefined || Duration.toMillis(duration) < 1
      ? Result.fail([`--${settingName(field)} ${shown(text)} ${durationExpected}`])
      : Result.succeed(duration)
  }

const readRateFlag = (text: string): Read<RateLimit> => {
  const rate = readRate(text)
  return rate === undefined
    ? Result.fail([`--rate ${shown(text)} ${rateExpected}`])
    : Result.succeed(rate)
}

const readCircuit = (text: string): Read<EndpointFields["circuit"]> =>
  Result.flatMap(readJson("--circuit", text, `settings as JSON such as '{"failures":5}'`), (json) =>
    readField("circuit", fields.circuit, json)
  )

const readRetry = (text: string): Read<RetryChoice> =>
  /^\s*[[{]/.test(text)
    ? Result.flatMap(
        readJson("--retry", text, "the name of a preset or a policy as JSON"),
        (json) => readField("retry", RetryPolicy, json)
      )
    : readField("retry", RetryChoice, text.trim())

const readRetryFor = (texts: ReadonlyArray<string>): Read<Record<string, RetryChoice>> => {
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

const ifAny = <A extends object>(found: A | undefined): A | undefined =>
  found === undefined || Object.keys(found).length === 0 ? undefined : found

/** Names that are not given are left out. */
const readHeaderNames = (flags: EndpointFlags): Read<EndpointFields["headerNames"]> => {
  const names: { -readonly [Key in keyof HeaderNames]: HeaderNames[Key] } = {}
  const problems: Array<string> = []
  for (const identity of identities) {
    const text = flags[`${identity}Header`]
    if (text === undefined) continue
    const read = readField(`headerNames.${identity}`, IdentityHeaderName, text.trim())
    if (Result.isFailure(read)) problems.push(...read.failure)
    else names[identity] = read.success
  }
  return problems.length === 0 ? Result.succeed(names) : Result.fail(problems)
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
    url: read(flags.url, (text) => readField("url", fields.url, text)),
    types: read(flags.types, readTypes),
    secret: flags.secret,
    sign: read(flags.sign, (text) => readField("sign", fields.sign, text)),
    signatureHeader: read(flags.signatureHeader, (text) =>
      readField("signatureHeader", fields.signatureHeader, text)
    ),
    headerNames: ifAny(taken(readHeaderNames(flags))),
    retry: read(flags.retry, readRetry),
    retryFor: ifAny(taken(readRetryFor(flags.retryFor ?? []))),
    circuit: read(flags.circuit, readCircuit),
    maxInFlight: read(flags.maxInFlight, readNumber("maxInFlight")),
    adapt: read(flags.adapt, readAdapt),
    format: read(flags.format, (text) => readField("format", BodyFormat, text)),
    rate: read(flags.rate, readRateFlag),
    timeout: read(flags.timeout, readTimeout("timeout")),
    connectTimeout: read(flags.connectTimeout, readTimeout("connectTimeout")),
    redirects: read(flags.redirects, readNumber("redirects")),
    contact: read(flags.contact, (text) => readField("contact", Contact, text)),
    alerts: read(flags.alerts, (text) => readAlertChoice("alerts", text, AlertSettings)),
    operational: flags.operational,
    headers: taken(readHeaders(flags)) ?? {},
    forwardHeaders:
      taken(readForwarded(flags.forwardHeader ?? [], flags.noForwardHeader ?? [])) ?? {}
  }
  return problems.length === 0 ? Result.succeed(found) : Result.fail(problems)
}
