import { hash } from "node:crypto"
import type { DeliveryIdentity } from "./delivery.ts"
import { roundKey } from "./delivery.ts"
import type { EventIdentity } from "./event.ts"
import { eventName } from "./event.ts"

/** What a sampled traceparent names, in lower-case hex. */
export interface SampledTrace {
  /** 16 bytes. */
  readonly traceId: string
  /** The span that the publisher sent it in, 8 bytes. */
  readonly parentId: string
}

/** version, trace id, parent id, flags, as W3C Trace Context has them. */
const traceparentPattern = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]([0-9a-f])$/
const parentIdAt = 36
const parentIdEnd = 52

const noTraceId = "0".repeat(32)
/** Trace Context has no span with this id. */
const noSpanId = "0".repeat(16)

/** The lowest bit of the flags. */
const sampledFlag = 1

/** Returns the trace and parent of a traceparent that has the sampled flag; undefined for others. */
export const sampledTrace = (traceparent: string | undefined): SampledTrace | undefined => {
  const [, traceId, parentId, flags = "0"] = traceparentPattern.exec(traceparent ?? "") ?? []
  const isSampled = (Number.parseInt(flags, 16) & sampledFlag) !== 0
  return traceId === undefined || parentId === undefined || !isSampled
    ? undefined
    : traceId === noTraceId || parentId === noSpanId
      ? undefined
      : { traceId, parentId }
}

/** Returns a traceparent with another parent id; trace id and flags stay as they are. */
export const withParentId = (traceparent: string, parentId: string): string =>
  `${traceparent.slice(0, parentIdAt)}${parentId}${traceparent.slice(parentIdEnd)}`

/** Returns the first 8 bytes of a hash, and never all zeros. */
export const spanIdOf = (digest: string): string => {
  const id = digest.slice(0, noSpanId.length)
  return id === noSpanId ? `${noSpanId.slice(1)}1` : id
}

const hashed = (text: string): string => spanIdOf(hash("sha256", text, "hex"))

/** Returns the id of the span in which an event is routed. */
export const routingSpanId = (event: EventIdentity): string => hashed(`route ${eventName(event)}`)

/**
 * Returns the id of an attempt's span. It is made of what the attempt's fact holds, so whoever reads
 * the fact knows the id that the receiver got.
 *
 * @param attempt its number within its round, from 1.
 */
export const attemptSpanId = (delivery: DeliveryIdentity, attempt: number): string =>
  hashed(`attempt ${delivery.tenant}.${delivery.endpoint} ${roundKey(delivery)} ${attempt}`)

/**
 * Returns the traceparent of an attempt's request: the attempt's span is the parent of what the
 * receiver does. One without the sampled flag is returned as it is.
 *
 * @param attempt its number within its round, from 1.
 */
export const attemptTraceparent = (
  traceparent: string,
  delivery: DeliveryIdentity,
  attempt: number
): string =>
  sampledTrace(traceparent) === undefined
    ? traceparent
    : withParentId(traceparent, attemptSpanId(delivery, attempt))
