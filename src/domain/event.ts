import type { GetHeader } from "./header-names.ts"
import { forwardedOf } from "./header-names.ts"
import { givenId } from "./intake.ts"
import type { Names } from "./names.ts"
import { isToken } from "./token.ts"
import { eventTypeProblem, isOwnType, ownTypeProblem } from "./type-filter.ts"

/**
 * Identifies an event: its sequence in EVENTS and the time the broker stored it, ms since the
 * epoch. The sequence alone is not unique: a truncated stream assigns it again.
 */
export interface EventIdentity {
  readonly eventSeq: number
  readonly eventAt: number
}

/** Returns an event's identity as one word, for ids and keys: `<sequence>@<ms>`. */
export const eventName = ({ eventAt, eventSeq }: EventIdentity): string => `${eventSeq}@${eventAt}`

const eventNamePattern = /^(\d+)@(\d+)$/

/** Parses an {@link eventName}. Returns undefined for any other text. */
export const readEventName = (name: string): EventIdentity | undefined => {
  const [, seq, at] = eventNamePattern.exec(name) ?? []
  return seq === undefined || at === undefined
    ? undefined
    : { eventSeq: Number(seq), eventAt: Number(at) }
}

/** An event as EVENTS stores it, without its bytes. */
export interface Event {
  /** Sequence in EVENTS. Together with `at` it identifies the event. */
  readonly seq: number
  readonly tenant: string
  readonly type: string
  /** The label that receivers see: the publisher's `Nats-Msg-Id`, or one from {@link eventId}. */
  readonly id: string
  /** When the broker stored it, ms since the epoch. */
  readonly at: number
  readonly content: Content
  /** How it came (domain/origin.ts); absent if it was published to its subject. */
  readonly channel?: string
}

/** The publisher's headers that go to receivers. */
export interface Content {
  readonly contentType?: string
  readonly traceparent?: string
  readonly tracestate?: string
  /**
   * Headers that an endpoint or its tenant names: names in lower case and values alternate. Which of
   * them an endpoint gets is decided when its request is made.
   */
  readonly forwarded?: ReadonlyArray<string>
}

/** The tenant and type of a published subject, or the problem with it. */
export type EventSubject =
  | { readonly tenant: string; readonly type: string }
  | { readonly problem: string; readonly tenant: string | undefined }

/**
 * Parses `<root>.<tenant>.<type…>`. Types of Petrel's own events are valid only under the alert
 * root, where no publisher may publish. No other types are valid there.
 */
export const parseEventSubject = (
  subject: string,
  { alertRoot, eventRoot }: Pick<Names, "alertRoot" | "eventRoot">
): EventSubject => {
  const isOwn = subject.startsWith(`${alertRoot}.`)
  const root = isOwn ? alertRoot : eventRoot
  if (!subject.startsWith(`${root}.`))
    return { tenant: undefined, problem: `the subject ${subject} is not ${root}.<tenant>.<type>` }
  const [tenant = "", ...type] = subject.slice(root.length + 1).split(".")
  if (!isToken(tenant))
    return {
      tenant: undefined,
      problem: `the tenant ${JSON.stringify(tenant.slice(0, 80))} must be 1 to 64 letters, digits, - or _ (and not a lone _)`
    }
  if (type.length === 0)
    return { tenant, problem: `${subject} names no type: publish to ${root}.<tenant>.<type>` }
  const problem = (isOwn ? ownTypeProblem : eventTypeProblem)(type.join("."))
  return problem === undefined ? { tenant, type: type.join(".") } : { tenant, problem }
}

/**
 * Rejects an event of Petrel's own without an id. The broker sends publish acknowledgements to any
 * reply subject that a publisher names, including a subject of Petrel's own events. Such replies
 * have no id, but Petrel's own events have one.
 */
export const subjectWithId = (subject: EventSubject, get: GetHeader): EventSubject =>
  "problem" in subject || !isOwnType(subject.type) || get("nats-msg-id") !== undefined
    ? subject
    : { tenant: subject.tenant, problem: "it has no id, which each event of Petrel's own has" }

const idPattern = /^[\x21-\x7e]{1,255}$/

/**
 * Returns the id that receivers see. An id that is not valid in an HTTP header is replaced by
 * `evt_<sequence>_<time stored>`, with the time in ms in base 36. The time is part of it because a
 * truncated stream assigns a sequence again, and receivers that remember ids must not confuse the
 * two events. join() returns a flat string (see `deliveryId`).
 */
export const eventId = (messageId: string | undefined, seq: number, at: number): string =>
  messageId !== undefined && idPattern.test(messageId)
    ? messageId
    : ["evt", seq, at.toString(36)].join("_")

/**
 * Returns the id under which an event of a tenant is stored that is published through the API or the
 * command line. It begins with the tenant, because the broker's deduplication covers all tenants:
 * without it, equal ids of two tenants would be one event. A dot follows, which no tenant contains.
 */
export const idOfTenant = (tenant: string, given: string): string =>
  given.startsWith(`${tenant}.`) ? given : `${tenant}.${given}`

const contentTypePattern = /^[\x20-\x7e]{1,255}$/
const traceparentPattern = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
const tracestatePattern = /^[\x20-\x7e]{1,512}$/

/**
 * Returns the publisher's headers that every receiver gets. Any other header is dropped, unless an
 * endpoint or its tenant names it (`forwardedOf`).
 */
export const contentOf = (get: GetHeader): Content => {
  const contentType = get("content-type")
  const traceparent = get("traceparent")
  const traced = traceparent !== undefined && traceparentPattern.test(traceparent)
  const tracestate = traced ? get("tracestate") : undefined
  return {
    ...(contentType !== undefined && contentTypePattern.test(contentType) ? { contentType } : {}),
    ...(traced ? { traceparent } : {}),
    ...(tracestate !== undefined && tracestatePattern.test(tracestate) ? { tracestate } : {})
  }
}

/** What an event tells its receivers. */
export interface EventContents {
  /** The id that they see. */
  readonly event: string
  readonly type: string
  readonly content: Content
  readonly body: Uint8Array
}

/** A message of EVENTS. */
export interface EventMessage {
  readonly subject: string
  readonly seq: number
  /** When the broker stored it, ms since the epoch. */
  readonly at: number
  readonly body: Uint8Array
}

/**
 * Returns the publisher's headers that an event carries to its receivers.
 *
 * @param forwards names of further headers that they get; undefined for none.
 * @param dropped called with the name of one whose value no HTTP header may have.
 */
export const contentFor = (
  header: GetHeader,
  forwards: ReadonlyArray<string> | undefined,
  dropped?: (name: string) => void
): Content => {
  const content = contentOf(header)
  const forwarded = forwards === undefined ? undefined : forwardedOf(header, forwards, dropped)
  return forwarded === undefined ? content : { ...content, forwarded }
}

/** Returns what a message of EVENTS tells; undefined where it is no event. */
export const eventContentsIn = (
  { at, body, seq, subject }: EventMessage,
  header: GetHeader,
  names: Pick<Names, "alertRoot" | "eventRoot">,
  forwards: ReadonlyArray<string> | undefined
): EventContents | undefined => {
  const parsed = subjectWithId(parseEventSubject(subject, names), header)
  if ("problem" in parsed) return undefined
  const event = eventId(givenId(header), seq, at)
  return { event, type: parsed.type, content: contentFor(header, forwards), body }
}
