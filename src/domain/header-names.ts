import { Schema } from "effect"

/**
 * Returns the first value of a message header by its lower-case name; undefined if it is absent or
 * empty.
 */
export type GetHeader = (name: string) => string | undefined

/** Headers that HTTP or Petrel sets in each request, under names that cannot be changed. */
const fixed =
  /^(host|content-length|content-type|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|user-agent|traceparent|tracestate|petrel-.*)$/

/** Headers that Petrel sets in some requests: names by default, and those of a signature. */
const standard = /^(webhook-.*|x-hub-signature-256|x-github-event|x-github-delivery)$/

const isHeaderName = (name: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/.test(name)

const invalid = "must be a valid header name such as x-tenant"
const taken = "is a header that Petrel or HTTP sets itself"

/** Returns why an endpoint may not have a header of this name, or undefined. */
export const headerNameProblem = (name: string): string | undefined => {
  if (!isHeaderName(name)) return invalid
  const text = name.toLowerCase()
  return fixed.test(text) || standard.test(text) ? taken : undefined
}

/** Returns why a header that identifies a request may not have this name, or undefined. */
const identityNameProblem = (name: string): string | undefined => {
  if (!isHeaderName(name)) return invalid
  return fixed.test(name.toLowerCase()) ? taken : undefined
}

/** The name of a header that only the endpoint has. */
export const OwnHeaderName = Schema.String.check(Schema.makeFilter(headerNameProblem))

/** The name of a header that identifies a request. */
export const IdentityHeaderName = Schema.String.check(Schema.makeFilter(identityNameProblem))

/** What the headers that identify each request hold. */
export const identities = ["id", "type", "timestamp"] as const
export type Identity = (typeof identities)[number]

const texts = {
  id: { description: "Of the event's id. (Default: webhook-id)" },
  type: { description: "Of the event's type. (Default: webhook-event-type)" },
  timestamp: {
    description: "Of the attempt's time, s since the epoch. (Default: webhook-timestamp)"
  }
}

/** Names of the headers that identify each request. What is left out has its usual name. */
export const HeaderNames = Schema.Struct({
  id: Schema.optionalKey(IdentityHeaderName).annotateKey(texts.id),
  type: Schema.optionalKey(IdentityHeaderName).annotateKey(texts.type),
  timestamp: Schema.optionalKey(IdentityHeaderName).annotateKey(texts.timestamp)
})
export type HeaderNames = typeof HeaderNames.Type

const changedName = Schema.optional(Schema.NullOr(IdentityHeaderName))

/** A change of the names, one by one; null goes back to the usual name. */
export const HeaderNamesPatch = Schema.Struct({
  id: changedName.annotateKey(texts.id),
  type: changedName.annotateKey(texts.type),
  timestamp: changedName.annotateKey(texts.timestamp)
})
type HeaderNamesPatch = typeof HeaderNamesPatch.Type

/** The names that Standard Webhooks gives to id and timestamp, and one like them for the type. */
export const usualHeaderNames: Readonly<Record<Identity, string>> = {
  id: "webhook-id",
  type: "webhook-event-type",
  timestamp: "webhook-timestamp"
}

/** Headers that GitHub style sends in addition, as GitHub does. */
export const githubHeaderNames: Readonly<Record<"id" | "type", string>> = {
  id: "x-github-delivery",
  type: "x-github-event"
}

/** Name of the signature header in Stripe style, unless an endpoint has another one. */
export const usualStripeHeader = "petrel-signature"

/** Returns the names after a change. A usual name is not kept. */
export const headerNamesAfter = (
  before: HeaderNames | undefined,
  patch: HeaderNamesPatch | undefined
): HeaderNames => {
  const after: { -readonly [Key in keyof HeaderNames]: HeaderNames[Key] } = {}
  for (const identity of identities) {
    const given = patch?.[identity]
    const name = given === undefined ? before?.[identity] : (given ?? undefined)
    if (name !== undefined && name.toLowerCase() !== usualHeaderNames[identity])
      after[identity] = name
  }
  return after
}

/** Returns why a header of this name cannot be forwarded, or undefined. */
export const forwardNameProblem = (name: string): string | undefined =>
  /^nats-/i.test(name) ? "is a header of NATS: it cannot be forwarded" : headerNameProblem(name)

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

/** Upper bound of a forwarded value, in characters. A longer one is dropped. */
export const maxForwardedLength = 1024
/** The part of the first forwarded value that facts and log lines show, in characters. */
const maxCorrelationLength = 256
