import { firstRound } from "../domain/delivery.ts"
import type { Fact } from "../domain/fact.ts"
import { isSuccess } from "../domain/fact.ts"
import type { SampledTrace } from "../domain/trace-context.ts"
import { attemptSpanId, routingSpanId, sampledTrace } from "../domain/trace-context.ts"

export type SpanAttribute = string | number | boolean

/** A span of OpenTelemetry. Ids are in lower-case hex, times in ms since the epoch. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string
  readonly name: string
  readonly kind: "client" | "consumer"
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: Readonly<Record<string, SpanAttribute>>
  /** What went wrong; empty where the attributes say it. Absent for a success. */
  readonly problem?: string
  /** The worker that it happened in. */
  readonly worker: string | undefined
}

/** A fact of a sampled trace, of which a span is made. */
export interface TracedFact {
  readonly trace: SampledTrace
  readonly fact: Fact & { readonly eventSeq: number; readonly eventAt: number }
}

const hasAttempt = ({ attempt, durationMs, kind }: Fact): boolean =>
  (isSuccess(kind) || kind === "attempt-failed") &&
  attempt !== undefined &&
  durationMs !== undefined

/** True for the fact of a plan's first part: an event has one span, however many its endpoints. */
const hasPlan = ({ plan }: Fact): boolean => plan?.part === 0

/** Returns the fact with its trace if a span is made of it; undefined for any other. */
export const tracedFact = (fact: Fact): TracedFact | undefined => {
  const { eventAt, eventSeq } = fact
  const trace = sampledTrace(fact.trace)
  return trace === undefined ||
    eventAt === undefined ||
    eventSeq === undefined ||
    !(hasAttempt(fact) || hasPlan(fact))
    ? undefined
    : { trace, fact: { ...fact, eventAt, eventSeq } }
}

/** Returns attributes without those that are undefined. */
const present = (
  attributes: Readonly<Record<string, SpanAttribute | undefined>>
): Readonly<Record<string, SpanAttribute>> => {
  const kept: Record<string, SpanAttribute> = {}
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) kept[name] = value
  return kept
}

const attemptStartedAt = ({ at, durationMs = 0 }: Fact): number => at - durationMs

/**
 * From when the broker stored the event to when its plan was made; where the plan is in the fact of
 * an attempt, to the attempt's beginning.
 */
const routingSpan = ({ fact, trace: { parentId, traceId } }: TracedFact): Span => {
  const { event, eventAt, plan, tenant, type, worker } = fact
  const endedAt = hasAttempt(fact) ? attemptStartedAt(fact) : fact.at
  return {
    ...{ traceId, spanId: routingSpanId(fact), parentId, worker },
    ...{ name: "route", kind: "consumer", startedAt: eventAt },
    endedAt: Math.max(eventAt, endedAt),
    attributes: present({
      "messaging.system": "nats",
      "messaging.operation.name": "route",
      "messaging.operation.type": "process",
      "messaging.message.id": event,
      "petrel.tenant": tenant,
      "petrel.event.id": event,
      "petrel.event.type": type,
      "petrel.endpoints": plan?.last === true ? plan.endpoints.length : undefined
    })
  }
}

/** What stands for the path and query of a receiver's URL: they may be credentials. */
const leftOut = "/REDACTED"

const receiverOf = (origin: string | undefined) => {
  if (origin === undefined || !URL.canParse(origin)) return {}
  const { hostname, port, protocol } = new URL(origin)
  return {
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    "url.full": `${origin}${leftOut}`
  }
}

const attemptSpan = (
  { fact, trace: { traceId } }: TracedFact,
  origin: string | undefined
): Span => {
  const { at, attempt = 1, endpoint, error, eventAt, eventSeq, kind, tenant, worker } = fact
  const { round = firstRound } = fact
  const isFailure = !isSuccess(kind)
  return {
    traceId,
    spanId: attemptSpanId({ tenant, endpoint, eventSeq, eventAt, round }, attempt),
    parentId: routingSpanId(fact),
    ...{ name: "POST", kind: "client", worker },
    ...{ startedAt: attemptStartedAt(fact), endedAt: at },
    attributes: present({
      "http.request.method": "POST",
      ...receiverOf(origin),
      "http.response.status_code": fact.status,
      "http.request.resend_count": attempt > 1 ? attempt - 1 : undefined,
      "error.type": isFailure ? (error?.class ?? fact.status?.toString()) : undefined,
      "petrel.tenant": tenant,
      "petrel.endpoint": endpoint,
      "petrel.event.id": fact.event,
      "petrel.event.type": fact.type,
      "petrel.delivery": fact.delivery,
      "petrel.round": round,
      "petrel.attempt": attempt,
      "petrel.probe": fact.probe
    }),
    ...(isFailure ? { problem: error?.message ?? "" } : {})
  }
}

/**
 * Returns the spans of a fact: the routing where it holds a plan, the attempt where it records one.
 * The same fact always has the same spans.
 *
 * @param origin scheme, host and port of the endpoint's URL, if known.
 */
export const spansOf = (traced: TracedFact, origin: string | undefined): ReadonlyArray<Span> => [
  ...(hasPlan(traced.fact) ? [routingSpan(traced)] : []),
  ...(hasAttempt(traced.fact) ? [attemptSpan(traced, origin)] : [])
]
