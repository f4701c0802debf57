import { Option, Schema } from "effect"
import type { Content, EventIdentity } from "./event.ts"
import { contentOf, eventName, readEventName } from "./event.ts"
import type { Place } from "./fact.ts"
import type { GetHeader } from "./header-names.ts"
import { forwardedText, readForwarded } from "./header-names.ts"
import { DeadReason, ErrorClass } from "./outcome.ts"
import { Timestamp } from "./timestamp.ts"

/** Answers in a row that one rule of the policy's `statuses` holds for. */
export const StatusRow = Schema.Struct({
  status: Schema.String.annotateKey({
    description: "The status or class that the rule names: `404`, `5xx`."
  }),
  attempts: Schema.Int.annotateKey({
    description: "Requests that were answered so, without probes."
  }),
  since: Timestamp.annotateKey({ description: "When the first of them was answered." })
})
export type StatusRow = typeof StatusRow.Type

/** The progress of a delivery in its round. Times in ms since the epoch. */
export const Progress = Schema.Struct({
  attempts: Schema.Int.annotateKey({ description: "Requests made in this round." }),
  probes: Schema.optionalKey(Schema.Int).annotateKey({
    description:
      "How many of them were probes: they leave its place in the policy's schedule as it is."
  }),
  firstAttemptAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When the first attempt was made."
  }),
  lastAttemptAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When the last attempt was made."
  }),
  nextAttemptAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When the next attempt is due."
  }),
  delayMs: Schema.optionalKey(Schema.Number).annotateKey({
    description:
      "The delay that `decorrelated` backoff has drawn last, ms: the next draw depends on it."
  }),
  inARow: Schema.optionalKey(StatusRow).annotateKey({
    description: "Present if the last answer has a limit of its own in the policy."
  }),
  lastStatus: Schema.optionalKey(Schema.Int).annotateKey({
    description: "The status of the last answer."
  }),
  lastErrorClass: Schema.optionalKey(ErrorClass).annotateKey({
    description: "The class of the last error."
  }),
  lastError: Schema.optionalKey(Schema.String).annotateKey({ description: "The last error." }),
  ends: Schema.optionalKey(DeadReason).annotateKey({
    description: "The last attempt was final, and the delivery ends for this reason."
  })
})
export type Progress = typeof Progress.Type

export const untried: Progress = { attempts: 0 }

/** An endpoint as subjects name it. */
export interface Addressee {
  readonly tenant: string
  readonly endpoint: string
}

/** One event for one endpoint, as a message carries it in addition to the event's bytes. */
export interface Delivery extends EventIdentity {
  readonly tenant: string
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  readonly type: string
  readonly round: string
  /** When the round began, ms since the epoch. */
  readonly began: number
  /** Give-up deadline, ms since the epoch. Fixed when the round begins. */
  readonly deadline: number
  /** The endpoint's configuration that the router saw. */
  readonly generation: string
  readonly revision: number
  readonly content: Content
  readonly progress: Progress
  /** The place that the message was moved from: a `placeName`. */
  readonly origin?: string
  /**
   * Size of the event's body, bytes, where the message does not hold it: it is read from EVENTS.
   * Absent where the message holds the body.
   */
  readonly leftBytes?: number
}

/** Returns `<event id>.<endpoint id>`, the id that people see. */
export const deliveryId = (delivery: Pick<Delivery, "event" | "endpoint">): string =>
  // join() returns a flat string. V8 takes twice as long to serialize a fact that holds a
  // concatenated one.
  [delivery.event, delivery.endpoint].join(".")

/**
 * Identifies a delivery among those of one endpoint. One event may reach an endpoint in several
 * rounds.
 */
export type RoundIdentity = Pick<Delivery, "eventSeq" | "eventAt" | "round">

/** Returns what a round is named by in facts and before people. */
export const namesOf = ({
  endpoint,
  event,
  eventAt,
  eventSeq,
  round,
  tenant,
  type
}: Delivery): Pick<
  Delivery,
  "tenant" | "endpoint" | "event" | "eventSeq" | "eventAt" | "type" | "round"
> => ({ tenant, endpoint, event, eventSeq, eventAt, type, round })

/** Identifies a round among all rounds. */
export type DeliveryIdentity = RoundIdentity & Pick<Delivery, "tenant" | "endpoint">

/**
 * Returns the name of a round in ids and keys, unique within its endpoint:
 * `<sequence>@<ms>.<round>`.
 */
export const roundKey = (of: RoundIdentity): string => `${eventName(of)}.${of.round}`

/** Parses a {@link roundKey}. Returns undefined for any other text. */
export const readRoundKey = (key: string): RoundIdentity | undefined => {
  const dot = key.indexOf(".")
  const event = readEventName(key.slice(0, dot))
  return event === undefined ? undefined : { ...event, round: key.slice(dot + 1) }
}

/** Returns the {@link eventName} of the event that a message's headers name. */
export const eventNameIn = (get: GetHeader): string =>
  `${get("petrel-event-seq")}@${get("petrel-event-at")}`

/** The round that routing starts. */
export const firstRound = "0"

type Pair = readonly [name: string, value: string]

/** Present where a message does not hold its event's body: its size, bytes. */
const leftBytesHeader = "petrel-left-bytes"

/** Carries the publisher's headers that are forwarded, as one: their own names are not Petrel's. */
const forwardedHeader = "petrel-forwarded"

/**
 * Returns the headers of a delivery's message. They are rebuilt at every hop, never copied from the
 * previous message.
 */
export const deliveryHeaders = (delivery: Delivery, messageId: string): Array<Pair> => {
  const headers: Array<Pair> = [
    ["Nats-Msg-Id", messageId],
    ["petrel-event", delivery.event],
    ["petrel-event-seq", String(delivery.eventSeq)],
    ["petrel-event-at", String(delivery.eventAt)],
    ["petrel-type", delivery.type],
    ["petrel-round", delivery.round],
    ["petrel-began", String(delivery.began)],
    ["petrel-deadline", String(delivery.deadline)],
    ["petrel-generation", delivery.generation],
    ["petrel-revision", String(delivery.revision)]
  ]
  const { content, progress } = delivery
  if (content.contentType !== undefined) headers.push(["content-type", content.contentType])
  if (content.traceparent !== undefined) headers.push(["traceparent", content.traceparent])
  if (content.tracestate !== undefined) headers.push(["tracestate", content.tracestate])
  if (content.forwarded !== undefined)
    headers.push([forwardedHeader, forwardedText(content.forwarded)])
  if (delivery.origin !== undefined) headers.push(["petrel-origin", delivery.origin])
  if (delivery.leftBytes !== undefined) headers.push([leftBytesHeader, String(delivery.leftBytes)])
  if (progress.attempts > 0 || progress.ends !== undefined)
    headers.push(["petrel-progress", JSON.stringify(progress)])
  return headers
}

const decodeProgress = Schema.decodeUnknownOption(Schema.fromJsonString(Progress))

/**
 * Parses a delivery from its message.
 *
 * @param subject its last two tokens are tenant and endpoint.
 * @returns undefined if the message is no delivery of Petrel.
 */
export const parseDelivery = (subject: string, get: GetHeader): Delivery | undefined => {
  const tokens = subject.split(".")
  const [tenant, endpoint] = tokens.slice(-2)
  const event = get("petrel-event")
  const type = get("petrel-type")
  const round = get("petrel-round")
  const generation = get("petrel-generation")
  const eventSeq = Number(get("petrel-event-seq"))
  const eventAt = Number(get("petrel-event-at") ?? Number.NaN)
  const began = Number(get("petrel-began"))
  const deadline = Number(get("petrel-deadline"))
  const revision = Number(get("petrel-revision"))
  if (tenant === undefined || endpoint === undefined || event === undefined) return undefined
  if (type === undefined || round === undefined || generation === undefined) return undefined
  if (!Number.isSafeInteger(eventSeq) || !Number.isSafeInteger(revision)) return undefined
  if (!Number.isFinite(eventAt) || !Number.isFinite(began) || !Number.isFinite(deadline))
    return undefined
  const stored = get("petrel-progress")
  const progress = stored === undefined ? untried : progressOf(stored)
  if (progress === undefined) return undefined
  const origin = get("petrel-origin")
  const leftText = get(leftBytesHeader)
  const leftBytes = leftText === undefined ? undefined : Number(leftText)
  if (leftBytes !== undefined && !Number.isSafeInteger(leftBytes)) return undefined
  return {
    tenant,
    endpoint,
    event,
    eventSeq,
    eventAt,
    type,
    round,
    began,
    deadline,
    generation,
    revision,
    content: carriedContent(get),
    progress,
    ...(origin === undefined ? {} : { origin }),
    ...(leftBytes === undefined ? {} : { leftBytes })
  }
}

/** A stored message, as far as it says what it carries. */
interface StoredHeaders {
  readonly subject: string
  readonly header: { readonly get: (name: string) => string }
}

const scheduleTarget = "Nats-Schedule-Target"

/** Returns the headers of a message that the broker delivers on a subject at a time, ms. */
export const scheduleHeaders = (at: number, subject: string): ReadonlyArray<Pair> => [
  ["Nats-Schedule", `@at ${new Date(at).toISOString()}`],
  [scheduleTarget, subject]
]

/** True for a message that waits for its time, and is delivered then. */
export const isSchedule = ({ header }: StoredHeaders): boolean => header.get(scheduleTarget) !== ""

/** Returns the subject on which a message is delivered, scheduled or not. */
export const deliverySubject = ({ header, subject }: StoredHeaders): string =>
  header.get(scheduleTarget) || subject

/**
 * Returns the delivery in a queue's message, scheduled or not; undefined where it is unreadable.
 */
export const deliveryIn = (message: StoredHeaders): Delivery | undefined =>
  parseDelivery(deliverySubject(message), (name) => message.header.get(name) || undefined)

const carriedContent = (get: GetHeader): Content => {
  const content = contentOf(get)
  const text = get(forwardedHeader)
  const forwarded = text === undefined ? undefined : readForwarded(text)
  return forwarded === undefined ? content : { ...content, forwarded }
}

/**
 * Identifies the delivery of a message that cannot be parsed as a whole, since a newer version may
 * have written it.
 *
 * @param subject its last two tokens are tenant and endpoint.
 * @returns undefined if the headers do not identify one.
 */
export const identifyDelivery = (subject: string, get: GetHeader): DeliveryIdentity | undefined => {
  const [tenant, endpoint] = subject.split(".").slice(-2)
  const eventSeq = Number(get("petrel-event-seq"))
  const eventAt = Number(get("petrel-event-at") ?? Number.NaN)
  const round = get("petrel-round")
  if (tenant === undefined || endpoint === undefined || round === undefined) return undefined
  if (!Number.isSafeInteger(eventSeq) || eventSeq <= 0) return undefined
  if (!Number.isFinite(eventAt)) return undefined
  return { tenant, endpoint, eventSeq, eventAt, round }
}

const progressOf = (text: string): Progress | undefined => {
  const decoded = decodeProgress(text)
  return decoded._tag === "Some" ? decoded.value : undefined
}

const decodeAttempts = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ attempts: Schema.Int }))
)

/** Returns the number of attempts in a message's `petrel-progress`; 0 where it has none. */
export const attemptsIn = (progress: string | undefined): number =>
  Option.match(decodeAttempts(progress ?? ""), {
    onNone: () => 0,
    onSome: ({ attempts }) => attempts
  })

/** A delivery and the message that holds it. */
export interface PlacedDelivery {
  readonly delivery: Delivery
  readonly place: Place
  readonly body: Uint8Array
}
