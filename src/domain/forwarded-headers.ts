import { Schema } from "effect"
import type { GetHeader } from "./event.ts"
import { headerNameProblem } from "./header-names.ts"
import { byName, emptied } from "./settings/setting.ts"

/** Upper bound of the headers that an endpoint or a tenant forwards: each is part of each message. */
const maxForwardHeaders = 16
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
const ForwardHeaders = Schema.Array(ForwardName).check(
  Schema.makeFilter((names: ReadonlyArray<string>) => {
    if (new Set(names).size < names.length) return "must name each header once"
    return names.length <= maxForwardHeaders
      ? undefined
      : `must be at most ${maxForwardHeaders} headers, not ${names.length}`
  })
)
type ForwardHeaders = typeof ForwardHeaders.Type

const changes = byName({
  value: Schema.Literal(true),
  nameProblem: forwardNameProblem,
  fold: (name) => name.toLowerCase(),
  unknown: "is not forwarded, so that it cannot be removed",
  most: {
    count: maxForwardHeaders,
    sentence: `at most ${maxForwardHeaders} headers are forwarded: each is stored with each delivery`
  }
})

/**
 * Headers of the publisher to forward, by name: true adds one, null removes one. Names are compared
 * without case.
 */
export type ForwardHeadersPatch = NonNullable<typeof changes.patch.Type>

const entriesOf = (names: ForwardHeaders = []) =>
  Object.fromEntries(names.map((name) => [name, true as const]))

/** Makes the setting that names headers of the publisher to forward. */
export const forwarded = (text: string) => ({
  ...emptied(ForwardHeaders, { text, usual: "none" }),
  given: changes.patch,
  patch: changes.patch,
  removal: changes.removal,
  after: (before: ForwardHeaders | undefined, patch: ForwardHeadersPatch = {}): ForwardHeaders => {
    const lower = Object.entries(patch).map(([name, change]) => [name.toLowerCase(), change])
    return Object.keys(changes.after(entriesOf(before), Object.fromEntries(lower)))
  },
  problems: (
    field: string,
    before: ForwardHeaders | undefined,
    patch: ForwardHeadersPatch | undefined
  ) => changes.problems(field, entriesOf(before), patch)
})

/** Returns true for a value that an HTTP header may have. */
const isForwardable = (value: string): boolean =>
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
