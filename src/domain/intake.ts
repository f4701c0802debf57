/**
 * What comes in from outside — webhooks of providers, rows of an outbox — as subjects of INTAKE: the
 * event's id is a token of the subject, so that the broker itself refuses to store it twice.
 */
import { createHash } from "node:crypto"
import type { GetHeader } from "./header-names.ts"
import type { Names } from "./names.ts"
import { isToken } from "./token.ts"
import { eventTypeProblem } from "./type-filter.ts"

/**
 * The header of an event that its provider did not bring, but a reconciliation fetched: when, as an
 * ISO 8601 text.
 */
export const fetchedHeader = "petrel-fetched"

/** The source of rows of an outbox: their type is the event's type, without the source before it. */
export const outboxSource = "outbox"

/** The header of an event that came in which carries the id that receivers see. */
export const eventIdHeader = "petrel-event-id"

/** The header with the provider's own type, where the subject has it encoded. */
export const sourceTypeHeader = "petrel-source-type"

/** Characters that a subject's token of an id may have, and those of a token of a type. */
const maxIdToken = 200
const maxTypeToken = 64
const maxType = 200
/** Characters of a type as its sender has it: the event carries it in a header. */
const maxSentType = 1_000
/** Characters that are kept of what is too long for a token; a hash follows. */
const keptOfLong = 32
const hashDigits = 24

const sha256 = (text: string | Uint8Array): string =>
  createHash("sha256").update(text).digest("hex")

/** Returns the id of an event whose sender gives none: the same bytes are the same event. */
export const idOfBody = (body: Uint8Array): string => `sha256-${sha256(body)}`

/**
 * Encodes an id as one token of a subject, so that different ids have different tokens: letters,
 * digits, `-` and `_` stay, all else becomes `%XX` by its UTF-8 bytes. What is longer than 200
 * characters then becomes `=` and its SHA-256.
 */
export const idToken = (id: string): string => {
  const token = encodeURIComponent(id.toWellFormed()).replace(
    /[!'()*.~]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
  )
  return token.length > maxIdToken ? `=${sha256(id)}` : token
}

const shortened = (text: string): string =>
  `${text.slice(0, keptOfLong)}_h${sha256(text).slice(0, hashDigits)}`

/** `_x2F_` for each character that a type may not have, and for a `_` that would begin such a code. */
const encodeTypeToken = (text: string): string => {
  if (text === "") return "_x_"
  const encoded = text
    .replaceAll(/_(?=x[0-9A-F]*_)/g, "_x5F_")
    .replaceAll(
      /[^A-Za-z0-9_-]/gu,
      (char) => `_x${char.codePointAt(0)?.toString(16).toUpperCase()}_`
    )
  return encoded.length > maxTypeToken ? shortened(encoded) : encoded
}

/**
 * Encodes a provider's type as an event's type: dots separate tokens as they are, and what no token
 * may have becomes `_x<hex>_`, as in `orders_x2F_create`. Different types have different encodings.
 *
 * @param maxLength characters that it may have; a longer one is cut, and a hash tells it from others.
 */
export const encodeType = (type: string, maxLength: number = maxType): string => {
  const encoded = type.split(".").map(encodeTypeToken).join(".")
  return encoded.length > maxLength ? shortened(encoded.replaceAll(".", "_")) : encoded
}

/** Returns the type of an event, without its source, of the type that its source gives it. */
export const typeWithin = ({ source, type }: Pick<IncomingEvent, "source" | "type">): string =>
  source === outboxSource ? type : encodeType(type, maxType - source.length - 1)

/** Returns the type that {@link encodeType} encoded, unless it was too long. */
export const decodeType = (encoded: string): string =>
  encoded.replaceAll(/_x([0-9A-F]*)_/g, (_, hex: string) =>
    hex === "" ? "" : String.fromCodePoint(Number.parseInt(hex, 16))
  )

/** An event that comes in. */
export interface IncomingEvent {
  readonly tenant: string
  /** The source's name, or {@link outboxSource}. */
  readonly source: string
  /** The sender's id of it: what comes again with the same id is not stored again. */
  readonly id: string
  /** The sender's type. Of an outbox's row a valid type of an event. */
  readonly type: string
  readonly body: Uint8Array
  readonly contentType?: string
  readonly traceparent?: string
  /** Further headers, in lower case and without line breaks, kept with the event. */
  readonly headers?: ReadonlyArray<readonly [name: string, value: string]>
}

/** How INTAKE stores an event. */
export interface IncomingMessage {
  readonly subject: string
  /** What all messages with the same id have in common. */
  readonly sameId: string
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
}

/** Returns why a source may not have this name, or undefined. */
export const sourceNameProblem = (name: string): string | undefined => {
  if (!isToken(name)) return "must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  if (name === outboxSource) return `must not be ${outboxSource}: rows of an outbox have that name`
  return eventTypeProblem(`${name}.x`) === undefined
    ? undefined
    : "must not be petrel: such types belong to Petrel's own events"
}

/** Returns why an event cannot be stored, as the end of a sentence; undefined if it can. */
export const incomingProblem = ({
  id,
  source,
  tenant,
  type
}: IncomingEvent): string | undefined => {
  if (!isToken(tenant))
    return "the tenant must be 1 to 64 letters, digits, - or _ (and not a lone _)"
  if (id === "") return "the id is empty"
  if (type.length > maxSentType) return `the type has more than ${maxSentType} characters`
  if (source === outboxSource) return eventTypeProblem(type)
  const problem = sourceNameProblem(source)
  return problem === undefined ? undefined : `the source's name ${problem}`
}

const visible = /^[\x21-\x7e]{1,255}$/

/** Returns the id that receivers see: ids of two sources of a tenant are never equal. */
export const receiversId = (
  { id, source, tenant }: Pick<IncomingEvent, "id" | "source" | "tenant">,
  token = idToken(id)
): string => {
  const prefix = `${tenant}.${source}.`
  const own = `${prefix}${id}`
  return visible.test(own) ? own : `${prefix}${token.length > 100 ? `=${sha256(id)}` : token}`
}

/** Returns how INTAKE stores a valid event. */
export const incomingMessage = (event: IncomingEvent, { subjects }: Names): IncomingMessage => {
  const { contentType, source, tenant, traceparent, type } = event
  const token = idToken(event.id)
  const isRow = source === outboxSource
  const encoded = typeWithin(event)
  const sameId = isRow
    ? subjects.incomingRow(tenant, token)
    : subjects.incoming(tenant, source, token)
  return {
    subject: `${sameId}.${encoded}`,
    sameId: `${sameId}.>`,
    headers: [
      [eventIdHeader, receiversId(event, token)],
      ...(encoded === type
        ? []
        : [[sourceTypeHeader, encodeURIComponent(type.toWellFormed())] as const]),
      ...(contentType === undefined ? [] : [["content-type", contentType] as const]),
      ...(traceparent === undefined ? [] : [["traceparent", traceparent] as const]),
      ...(event.headers ?? [])
    ]
  }
}

/** Returns the id that an event's message carries: the publisher's, or that of one that came in. */
export const givenId = (get: GetHeader): string | undefined =>
  get("nats-msg-id") ?? get(eventIdHeader)
