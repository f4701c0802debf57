import type { Names } from "./names.ts"
import { isToken } from "./token.ts"
import { eventTypeProblem, isOwnType, ownTypeProblem } from "./type-filter.ts"

/** Looks up a message header by its lower-case name: the first value, or undefined where there is none or an empty one. */
export type GetHeader = (name: string) => string | undefined

/**
 * What tells one event from all others: its sequence in EVENTS and when the broker stored it there, ms
 * since the epoch. The sequence alone does not: a stream that loses its end gives it again.
 */
export interface EventIdentity {
  readonly eventSeq: number
  readonly eventAt: number
}

/** An event's identity as one word, for ids and keys: `<sequence>@<ms>`. */
export const eventName = ({ eventAt, eventSeq }: EventIdentity): string => `${eventSeq}@${eventAt}`

const eventNamePattern = /^(\d+)@(\d+)$/

/** The identity that an {@link eventName} stands for; undefined where it is none. */
export const readEventName = (name: string): EventIdentity | undefined => {
  const [, seq, at] = eventNamePattern.exec(name) ?? []
  return seq === undefined || at === undefined
    ? undefined
    : { eventSeq: Number(seq), eventAt: Number(at) }
}

/** An event as it lies in EVENTS, without its bytes. */
export interface Event {
  /** Sequence in EVENTS; with `at` its identity. */
  readonly seq: number
  readonly tenant: string
  readonly type: string
  /** Label for receivers: the publisher's `Nats-Msg-Id`, else one made by {@link eventId}. */
  readonly id: string
  /** When the broker stored it, ms since the epoch. */
  readonly at: number
  readonly content: Content
}

/** Headers of a publisher that go along to the receiver. */
export interface Content {
  readonly contentType?: string
  readonly traceparent?: string
  readonly tracestate?: string
}

/** Who and what a published subject names, or why it names nobody. */
export type EventSubject =
  | { readonly tenant: string; readonly type: string }
  | { readonly problem: string; readonly tenant: string | undefined }

/**
 * Takes `<root>.<tenant>.<type…>` apart. Types of Petrel's own events are valid under the root of
 * these only, where no publisher may publish, and no others are valid there.
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
 * What a subject names, for an event with these headers. The broker answers a publisher on whatever
 * subject it asks to be answered on, a subject of Petrel's own events among them; but its answers
 * have no id, and Petrel's own events have one.
 */
export const subjectWithId = (subject: EventSubject, get: GetHeader): EventSubject =>
  "problem" in subject || !isOwnType(subject.type) || get("nats-msg-id") !== undefined
    ? subject
    : { tenant: subject.tenant, problem: "it has no id, which each event of Petrel's own has" }

const idPattern = /^[\x21-\x7e]{1,255}$/

/**
 * The id receivers see. In place of one that HTTP could not carry as a header stands
 * `evt_<sequence>_<time stored>`, the time in ms to the base of 36: a receiver that remembers ids
 * must not take an event for another that had the sequence before.
 */
export const eventId = (messageId: string | undefined, seq: number, at: number): string =>
  messageId !== undefined && idPattern.test(messageId) ? messageId : `evt_${seq}_${at.toString(36)}`

const contentTypePattern = /^[\x20-\x7e]{1,255}$/
const traceparentPattern = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
const tracestatePattern = /^[\x20-\x7e]{1,512}$/

/** The allow-list: what of a publisher's headers is taken along. Anything else ends here. */
export const contentOf = (get: GetHeader): Content => {
  const contentType = get("content-type")
  const traceparent = get("traceparent")
  const tracestate = get("tracestate")
  const traced = traceparent !== undefined && traceparentPattern.test(traceparent)
  return {
    ...(contentType !== undefined && contentTypePattern.test(contentType) ? { contentType } : {}),
    ...(traced ? { traceparent } : {}),
    ...(traced && tracestate !== undefined && tracestatePattern.test(tracestate)
      ? { tracestate }
      : {})
  }
}
