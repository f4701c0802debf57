import { Schema } from "effect"
import type { Content, EventIdentity, GetHeader } from "./event.ts"
import { contentOf, eventName, readEventName } from "./event.ts"
import { DeadReason, ErrorClass } from "./outcome.ts"

/** What is known of a delivery from its attempts so far. Times in ms since the epoch. */
export const Progress = Schema.Struct({
  /** Requests made in this round. */
  attempts: Schema.Int,
  firstAttemptAt: Schema.optionalKey(Schema.Number),
  lastAttemptAt: Schema.optionalKey(Schema.Number),
  nextAttemptAt: Schema.optionalKey(Schema.Number),
  lastStatus: Schema.optionalKey(Schema.Int),
  lastErrorClass: Schema.optionalKey(ErrorClass),
  lastError: Schema.optionalKey(Schema.String),
  /** Its last attempt was the last of all: it ends for this reason. */
  ends: Schema.optionalKey(DeadReason)
})
export type Progress = typeof Progress.Type

export const untried: Progress = { attempts: 0 }

/** One event for one endpoint, as a message carries it beside the event's bytes. */
export interface Delivery extends EventIdentity {
  readonly tenant: string
  readonly endpoint: string
  /** The event's id. */
  readonly event: string
  readonly type: string
  readonly round: string
  /** When the round began, ms since the epoch. */
  readonly began: number
  /** When it is given up, ms since the epoch; fixed when the round begins. */
  readonly deadline: number
  /** The endpoint as routing saw it. */
  readonly generation: string
  readonly revision: number
  readonly content: Content
  readonly progress: Progress
  /** Where it was moved from: a `placeName`. */
  readonly origin?: string
}

/** `<event id>.<endpoint id>`: how a delivery is shown. */
export const deliveryId = (delivery: Pick<Delivery, "event" | "endpoint">): string =>
  // Joined it is in one piece; V8 takes twice as long to write a fact that holds a text in parts.
  [delivery.event, delivery.endpoint].join(".")

/** What tells the deliveries of one endpoint from each other: an event may come to it in several rounds. */
export type RoundIdentity = Pick<Delivery, "eventSeq" | "eventAt" | "round">

/** What tells a round from all others. */
export type DeliveryIdentity = RoundIdentity & Pick<Delivery, "tenant" | "endpoint">

/** What a round is called among those of its endpoint, in ids and keys: `<sequence>@<ms>.<round>`. */
export const roundKey = (of: RoundIdentity): string => `${eventName(of)}.${of.round}`

/** The round that a {@link roundKey} stands for; undefined where it is none. */
export const readRoundKey = (key: string): RoundIdentity | undefined => {
  const dot = key.indexOf(".")
  const event = readEventName(key.slice(0, dot))
  return event === undefined ? undefined : { ...event, round: key.slice(dot + 1) }
}

/** The {@link eventName} of the event that a message's headers name. */
export const eventNameIn = (get: GetHeader): string =>
  `${get("petrel-event-seq")}@${get("petrel-event-at")}`

/** The {@link roundKey} of the round that a message's headers name. */
export const roundKeyIn = (get: GetHeader): string => `${eventNameIn(get)}.${get("petrel-round")}`

/** The round that routing begins. */
export const firstRound = "0"

type Pair = readonly [name: string, value: string]

/** The headers of a delivery's message: built anew at every hop, never copied from the last one. */
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
  if (delivery.origin !== undefined) headers.push(["petrel-origin", delivery.origin])
  if (progress.attempts > 0) headers.push(["petrel-progress", JSON.stringify(progress)])
  return headers
}

const decodeProgress = Schema.decodeUnknownOption(Schema.fromJsonString(Progress))

/**
 * Reads a delivery from its message.
 *
 * @param subject of which the last two tokens are tenant and endpoint.
 * @returns undefined where the message is none of ours.
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
    content: contentOf(get),
    progress,
    ...(origin === undefined ? {} : { origin })
  }
}

/**
 * Which delivery a message is, where it cannot be read as a whole: a newer version may have written it.
 *
 * @param subject of which the last two tokens are tenant and endpoint.
 * @returns undefined where its headers do not say.
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
