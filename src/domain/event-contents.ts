import type { Delivery } from "./delivery.ts"
import type { Content, GetHeader } from "./event.ts"
import { contentOf, eventId, parseEventSubject, subjectWithId } from "./event.ts"
import { forwardedOf } from "./forwarded-headers.ts"
import { givenId } from "./intake.ts"
import type { Names } from "./names.ts"

/** What an event tells its receivers. */
export interface EventContents extends Pick<Delivery, "content" | "event" | "type"> {
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
