import { writeFile } from "node:fs/promises"
import { hostname, userInfo } from "node:os"
import { Clock, Duration, Effect, Option, Schema } from "effect"
import { Argument, CliError, Flag } from "effect/cli"
import { readShortDuration } from "../../domain/duration.ts"
import type { EndpointName } from "../../domain/endpoint.ts"
import { readSourceLabel } from "../../domain/source.ts"
import { isToken } from "../../domain/token.ts"
import type { OutlinedPolicy } from "../../operations/endpoints/outlined-policy.ts"
import { nearestName } from "../../policy/nearest-name.ts"
import { outlineSvg } from "../format/outline.ts"
import { Refused } from "../refused.ts"
import { remark } from "../terminal/stdout.ts"

const decode = Schema.decodeUnknownOption(Schema.DurationFromString)

/** The input that `readDuration` accepts, for error messages. */
export const durationExpected = "must be a length of time such as '30 seconds', 5m or 72h"

/** Parses `30 seconds`, as Effect writes it, `30s`, `1h 30m`, or `PT30S` of ISO 8601. Accepts zero and rejects infinity. */
export const readDuration = (text: string): Duration.Duration | undefined => {
  const trimmed = text.trim()
  const ms = readShortDuration(trimmed)
  const read = decode(ms === undefined ? trimmed : `${ms} millis`)
  return Option.getOrUndefined(
    Option.filter(read, (it) => Duration.isFinite(it) && Duration.toMillis(it) >= 0)
  )
}

const isoDate =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?))?$/

/** The input that `parseWhen` accepts, for error messages. */
const whenExpected =
  'must be a time such as 2026-03-04T10:30:00Z, or how long ago, such as "15 minutes" or 1h'

/**
 * Parses `2026-03-04T10:30:00Z` (without a zone: local time; a date alone: midnight) or a duration
 * ago, such as `15 minutes` or `15m`.
 *
 * @param now ms since the epoch, like the result.
 */
export const parseWhen = (text: string, now: number): number | undefined => {
  const trimmed = text.trim()
  const ago = readDuration(trimmed)
  if (ago !== undefined) return now - Duration.toMillis(ago)
  const [, date, time = "00:00"] = isoDate.exec(trimmed) ?? []
  const at = Date.parse(`${date}T${time}`)
  return Number.isNaN(at) ? undefined : at
}

const namePart = "1 to 64 letters, digits, - or _ (and not a lone _)"

/** Makes a flag optional; undefined if it is not given. */
export const maybe = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  flag.pipe(Flag.optional, Flag.map(Option.getOrUndefined))

/** A flag whose value is a whole number within bounds. */
export const boundedFlag = (
  name: string,
  metavar: string,
  description: string,
  [least, most]: readonly [number, number]
): Flag.Flag<number | undefined> =>
  Flag.Int(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.filterMap(
      (value) => (value >= least && value <= most ? Option.some(value) : Option.none()),
      () => `must be from ${least} to ${most}`
    ),
    maybe
  )

/** A flag whose value is the URL of a receiver. */
export const receiverUrlFlag = (name: string, description: string): Flag.Flag<string | undefined> =>
  Flag.String(name).pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription(description),
    Flag.filterMap(
      (text) =>
        URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
          ? Option.some(text)
          : Option.none(),
      () => "must be a URL such as http://127.0.0.1:8080/hooks"
    ),
    maybe
  )

/** The lengths of time that a flag takes, in ms, and what is said of others. */
interface DurationBounds {
  readonly least?: number
  readonly most?: number
  readonly problem: string
}

/** A flag for a length of time, as `readDuration` reads it. */
export const durationFlag = (
  name: string,
  description: string,
  { least = 0, most = Number.POSITIVE_INFINITY, problem }: DurationBounds = {
    problem: durationExpected
  }
): Flag.Flag<Duration.Duration> =>
  Flag.String(name).pipe(
    Flag.withMetavar("DURATION"),
    Flag.withDescription(description),
    Flag.filterMap(
      (text) =>
        Option.filter(Option.fromUndefinedOr(readDuration(text)), (read) => {
          const ms = Duration.toMillis(read)
          return ms >= least && ms <= most
        }),
      (text) => (readDuration(text) === undefined ? durationExpected : problem)
    )
  )

/** A flag for a whole number of a range, both ends included. */
export const wholeNumber = (
  name: string,
  [least, most]: readonly [number, number],
  description: string
) =>
  Flag.String(name).pipe(
    Flag.withMetavar("N"),
    Flag.withDescription(description),
    Flag.filterMap(
      (text) => {
        const number = /^\d{1,6}$/.test(text) ? Number(text) : 0
        return number >= least && number <= most ? Option.some(number) : Option.none()
      },
      () => `must be a whole number from ${least} to ${most}`
    ),
    maybe
  )

/** An optional flag whose value is a text. */
export const textFlag = (name: string, metavar: string, description: string) =>
  maybe(Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description)))

/** A flag that may be repeated. */
export const repeated = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.atLeast(0)
  )

/** A flag without a value. */
export const isSet = (name: string, description: string) =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(description),
    Flag.withDefault(false),
    Flag.withoutNegation
  )

/** `--tenant T`: restricts a command to one tenant. */
export const tenantFlag = Flag.String("tenant").pipe(
  Flag.withMetavar("TENANT"),
  Flag.withDescription("Only this tenant's"),
  Flag.filterMap(
    (text) => (isToken(text) ? Option.some(text) : Option.none()),
    () => `must be ${namePart}`
  ),
  maybe
)

const parseEndpoint = (text: string): Option.Option<EndpointName> => {
  const [tenant = "", id = "", ...rest] = text.split("/")
  return isToken(tenant) && isToken(id) && rest.length === 0
    ? Option.some({ tenant, id })
    : Option.none()
}

/** A flag whose value is an endpoint's name. */
export const endpointNameFlag = (name: string, description: string): Flag.Flag<EndpointName> =>
  Flag.String(name).pipe(
    Flag.withMetavar("TENANT/ENDPOINT"),
    Flag.withDescription(description),
    Flag.filterMap(
      parseEndpoint,
      () => `must be TENANT/ENDPOINT, such as acme/billing, each ${namePart}`
    )
  )

/** The name of an endpoint: `<tenant>/<endpoint>`. */
export const endpointArgument = Argument.String("TENANT/ENDPOINT").pipe(
  Argument.withDescription("Such as acme/billing"),
  Argument.filterMap(
    parseEndpoint,
    () => `must be a tenant and an endpoint such as acme/billing, each ${namePart}`
  )
)

/** The name of an endpoint that is to be added: `<tenant>/<endpoint>`, or the tenant alone. */
export const newEndpointArgument = Argument.String("TENANT[/ENDPOINT]").pipe(
  Argument.withDescription("Such as acme/billing; acme alone makes an id for it"),
  Argument.filterMap(
    (text): Option.Option<{ readonly tenant: string; readonly id?: string }> =>
      isToken(text) ? Option.some({ tenant: text }) : parseEndpoint(text),
    () => `must be a tenant and an endpoint such as acme/billing, each ${namePart}, or a tenant`
  )
)

/** `--endpoint T/E`: restricts a command to one endpoint. */
export const endpointFlag = maybe(endpointNameFlag("endpoint", "Only this endpoint's"))

/** A time as given, and in ms since the epoch. */
interface GivenTime {
  readonly text: string
  readonly at: number
}

/** A flag whose value is a time. */
export const givenTimeFlag = (
  name: string,
  description: string
): Flag.Flag<GivenTime | undefined> =>
  Flag.String(name).pipe(
    Flag.withMetavar("TIME"),
    Flag.withDescription(description),
    Flag.mapEffect((text) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const at = parseWhen(text, now)
        return at === undefined
          ? new CliError.InvalidValue({
              option: name,
              value: text,
              expected: whenExpected,
              kind: "flag"
            })
          : Effect.succeed({ text, at })
      })
    ),
    maybe
  )

/** A flag whose value is a time, in ms since the epoch. */
export const timeFlag = (name: string, description: string): Flag.Flag<number | undefined> =>
  Flag.map(givenTimeFlag(name, description), (given) => given?.at)

/**
 * A flag whose value is one of several names. An unknown name is answered with the most similar
 * one.
 */
export const nameFlag = <const Names extends ReadonlyArray<string>>(
  name: string,
  names: Names
): Flag.Flag<Names[number]> =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text): Option.Option<Names[number]> =>
        Option.fromUndefinedOr(names.find((known) => known === text)),
      (text) => {
        const nearest = nearestName(text, names)
        return `must be one of ${names.join(", ")}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`
      }
    )
  )

/** `--limit N`: shows so many of a list. */
export const limitFlag = (description: string): Flag.Flag<number | undefined> =>
  Flag.Int("limit").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription(description),
    Flag.filter(
      (count) => count > 0,
      () => "must be a whole number from 1 on"
    ),
    maybe
  )

export const revealFlag = isSet("reveal", "Show secrets and the values of headers")

const maxNameLength = 200

/** Returns the user of this process on this machine: `ana@host`. */
export const thisUser = (): string => {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // Some containers run under a uid without a name.
    return `${process.getuid?.() ?? "unknown"}@${hostname()}`
  }
}

/** `--by WHO`: who requests the change, recorded in the history. */
export const byFlag = Flag.String("by").pipe(
  Flag.withMetavar("WHO"),
  Flag.withDescription("Who asks for it, for the history (default: user@host)"),
  Flag.filterMap(
    (text) =>
      /^\P{Cc}+$/u.test(text) && text.length <= maxNameLength ? Option.some(text) : Option.none(),
    () => `must be a name of 1 to ${maxNameLength} characters on one line`
  ),
  Flag.optional,
  Flag.map(Option.getOrElse(thisUser))
)

export const svgFlag = textFlag("svg", "FILE", "Write the drawing as an SVG picture instead")

/** Writes policies as a picture. */
export const writeSvg = Effect.fnUntraced(function* (
  file: string,
  outlines: ReadonlyArray<OutlinedPolicy>
) {
  yield* Effect.tryPromise({
    try: () => writeFile(file, outlineSvg(outlines)),
    catch: (error) =>
      new Refused({
        message: `cannot write ${file}: ${error instanceof Error ? error.message : ""}`
      })
  })
  yield* remark(`${file} is written`)
})

/** The name of a source: `<tenant>/<source>`. */
export const sourceArgument = Argument.String("TENANT/SOURCE").pipe(
  Argument.withDescription("Such as acme/stripe"),
  Argument.filterMap(
    (text) => Option.fromUndefinedOr(readSourceLabel(text)),
    () =>
      "must be a tenant and a source such as acme/stripe, each 1 to 64 letters, digits, - or _ (and not outbox or petrel)"
  )
)
