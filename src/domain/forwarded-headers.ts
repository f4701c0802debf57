import { Schema } from "effect"
import type { GetHeader } from "./event.ts"
import { headerNameProblem } from "./header-names.ts"
import type { Problem } from "./problem.ts"
import { everyKey } from "./record.ts"
import { emptied } from "./settings/setting.ts"

/** Upper bound of the headers that an endpoint or a tenant forwards: each is part of each message. */
export const maxForwardHeaders = 16
/** Upper bound of a forwarded value, in characters. A longer one is dropped. */
export const maxForwardedLength = 1024
/** The part of the first forwarded value that facts and log lines show, in characters. */
const maxCorrelationLength = 256

/** Returns why a header of this name cannot be forwarded, or undefined. */
export const forwardNameProblem = (name: string): string | undefined =>
  /^nats-/i.test(name) ? "is a header of NATS: it cannot be forwarded" : headerNameProblem(name)

const ForwardName = Schema.String.check(
  Schema.makeFilter(
    (name: string) =>
      forwardNameProblem(name) ??
      (name === name.toLowerCase() ? undefined : "must be in lower case")
  )
)

/** Names of the publisher's headers that receivers get, in lower case, each once. */
export const ForwardHeaders = Schema.Array(ForwardName).check(
  Schema.makeFilter((names: ReadonlyArray<string>) => {
    if (new Set(names).size < names.length) return "must name each header once"
    return names.length <= maxForwardHeaders
      ? undefined
      : `must be at most ${maxForwardHeaders} headers, not ${names.length}`
  })
)
export type ForwardHeaders = typeof ForwardHeaders.Type

/**
 * Headers of the publisher to forward, by name: true adds one, null removes one. Names are compared
 * without case.
 */
export const ForwardHeadersPatch = Schema.Record(
  Schema.String,
  Schema.NullOr(Schema.Literal(true))
).check(everyKey(forwardNameProblem))
export type ForwardHeadersPatch = typeof ForwardHeadersPatch.Type

const forwardedAfter = (
  before: ForwardHeaders = [],
  patch: ForwardHeadersPatch = {}
): ForwardHeaders => {
  const names = new Set(before)
  for (const [name, change] of Object.entries(patch))
    if (change === true) names.add(name.toLowerCase())
    else names.delete(name.toLowerCase())
  return [...names]
}

const forwardProblems = (
  field: string,
  before: ForwardHeaders = [],
  patch: ForwardHeadersPatch = {}
): ReadonlyArray<Problem> => {
  const gone = Object.entries(patch).filter(
    ([name, change]) => change === null && !before.includes(name.toLowerCase())
  )
  const { length } = forwardedAfter(before, patch)
  return [
    ...gone.map(([name]) => ({
      field: `${field}.${name}`,
      message: "is not forwarded, so that it cannot be removed"
    })),
    ...(length > maxForwardHeaders
      ? [
          {
            field,
            message: `would be ${length}, and at most ${maxForwardHeaders} headers are forwarded: each is stored with each delivery`
          }
        ]
      : [])
  ]
}

/** Makes the setting that names headers of the publisher to forward. */
export const forwarded = (text: string) =>
  ({
    ...emptied(ForwardHeaders, { text, usual: "none" }),
    given: Schema.optional(ForwardHeadersPatch),
    patch: Schema.optional(ForwardHeadersPatch),
    removal: "null by name",
    after: forwardedAfter,
    problems: forwardProblems
  }) as const

/** Returns true for a value that an HTTP header may have. */
export const isForwardable = (value: string): boolean =>
  value.length <= maxForwardedLength && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

/**
 * Returns the publisher's headers of these names that an event has: names and values alternate, in
 * the order of the names. Undefined if it has none.
 *
 * @param dropped called with the name of a header whose value no HTTP header may have.
 */
export const forwardedOf = (
  get: GetHeader,
  names: ReadonlyArray<string>,
  dropped: (name: string) => void = () => undefined
): ReadonlyArray<string> | undefined => {
  let found: Array<string> | undefined
  for (const name of names) {
    const value = get(name)
    if (value === undefined) continue
    if (!isForwardable(value)) dropped(name)
    else if (found === undefined) found = [name, value]
    else found.push(name, value)
  }
  return found
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(Schema.String)))

/** Returns the value of the header by which a message of Petrel carries forwarded headers. */
export const forwardedText = (forwarded: ReadonlyArray<string>): string => JSON.stringify(forwarded)

/** Parses a {@link forwardedText}. Returns undefined for any other text. */
export const readForwarded = (text: string): ReadonlyArray<string> | undefined => {
  const decoded = decode(text)
  return decoded._tag === "Some" && decoded.value.length % 2 === 0 ? decoded.value : undefined
}

/** Returns what facts and log lines show: the value of the first forwarded header, shortened. */
export const correlationOf = (forwarded: ReadonlyArray<string> | undefined): string | undefined =>
  forwarded?.[1]?.slice(0, maxCorrelationLength)

/**
 * Returns the headers that one endpoint gets: its own ones, then the forwarded ones that it names.
 * Names and values alternate.
 */
export const withForwarded = (
  ownHeaders: ReadonlyArray<string>,
  forwarded: ReadonlyArray<string>,
  names: ReadonlySet<string>
): ReadonlyArray<string> => {
  const sent = [...ownHeaders]
  for (let index = 0; index + 1 < forwarded.length; index += 2) {
    const [name = "", value = ""] = [forwarded[index], forwarded[index + 1]]
    if (names.has(name)) sent.push(name, value)
  }
  return sent
}
