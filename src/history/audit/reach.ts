import type { StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { keptSince, undroppedSince } from "../../broker/kept-since.ts"
import { firstSince } from "../../broker/scan.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { Beginning } from "./beginning.ts"
import type { Scope } from "./scope.ts"

/** What to audit. Times in ms since the epoch, of when the broker stored an event; inclusive. */
export interface AuditRange {
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** Only this one's. */
  readonly tenant?: string | undefined
}

/** What the streams can say about a range, as their leaders knew it when the audit began. */
export interface Reach {
  readonly scope: Scope
  /** Sequences of HISTORY from which on facts may be about the range. */
  readonly firstFact: number
  readonly begins: { readonly events: Beginning; readonly history: Beginning }
  /** Since when all events and all facts are there or should be, ms since the epoch; 0: since the beginning. */
  readonly since: number
  /** When the range begins, where that was asked for, ms since the epoch. */
  readonly asked: number | undefined
  /** The range begins no earlier. */
  readonly isVouched: boolean
  /** Everything up to here was routed, and acknowledged by the router. */
  readonly routerFloor: number
  readonly lastEvent: number
  /** By how much the clocks of those that store messages may differ, ms. */
  readonly clocksApart: number
}

/** What is there of a stream's beginning. Where clocks differ, less need be. */
const beginningOf = (info: StreamInfo): Beginning => ({
  first: Math.max(1, info.state.first_seq),
  dueSince: undroppedSince(info) + 2 * maxClockSkewMs
})

/**
 * Since when the plans of all events are there, or should be, where the history begins with a fact of
 * that time: an event and its plan are stored by different nodes.
 */
const plansSince = (firstAt: number, { dueSince }: Beginning): number =>
  firstAt === 0 ? 0 : Math.min(firstAt + maxClockSkewMs, dueSince)

/** Finds out what a range means in sequences, and whether the streams reach back far enough for it. */
export const readReach = Effect.fnUntraced(function* (range: AuditRange) {
  const { ask, jsm, names } = yield* Broker
  // The floor first: what it covers was planned and sent before anything else is read.
  const router = yield* ask("look at the router", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  const look = (stream: string) => ask(`look at ${stream}`, () => jsm.streams.info(stream))
  const [events, history] = yield* Effect.all([look(names.events), look(names.history)])
  const { since, tenant, until } = range
  const begins = { events: beginningOf(events), history: beginningOf(history) }
  const kept = Math.max(keptSince(events), plansSince(keptSince(history), begins.history))
  const begin = since ?? kept
  const firstKept = begins.events.first
  const lastEvent = events.state.last_seq
  const reach: Reach = {
    scope: {
      firstEvent: Math.max(firstKept, yield* firstSince(names.events, Math.max(begin, kept))),
      lastEvent:
        until === undefined
          ? lastEvent
          : Math.min(lastEvent, (yield* firstSince(names.events, until + 1)) - 1),
      firstKept,
      since: since ?? 0,
      until: until ?? Number.POSITIVE_INFINITY,
      tenant,
      isWhole: since === undefined && history.state.first_seq <= 1
    },
    firstFact: Math.max(
      begins.history.first,
      since === undefined ? 1 : yield* firstSince(names.history, since - maxClockSkewMs)
    ),
    begins,
    since: kept,
    asked: since,
    // A history that is empty now and was not once has nothing to say.
    isVouched: begin >= kept && (history.state.messages > 0 || history.state.last_seq === 0),
    routerFloor: router.ack_floor.stream_seq,
    lastEvent,
    clocksApart: events.cluster === undefined ? 0 : maxClockSkewMs
  }
  return reach
})

/**
 * What is left of a reach once its history was read: facts at its beginning may have expired before
 * they could be.
 *
 * @param first the sequence of the first fact that was read, and when it was stored, ms since the epoch.
 */
export const withoutExpired = Effect.fnUntraced(function* (
  reach: Reach,
  first: { readonly seq: number; readonly at: number } | undefined
) {
  if (first !== undefined && first.seq <= reach.firstFact) return reach
  const { ask, jsm, names } = yield* Broker
  const history = yield* ask("look at the history", () => jsm.streams.info(names.history))
  if (history.state.first_seq <= reach.firstFact) return reach
  const begins = { ...reach.begins, history: beginningOf(history) }
  const since = Math.max(reach.since, plansSince(first?.at ?? keptSince(history), begins.history))
  const firstEvent = Math.max(reach.scope.firstEvent, yield* firstSince(names.events, since))
  return {
    ...reach,
    begins,
    since,
    scope: { ...reach.scope, firstEvent, isWhole: false },
    isVouched: reach.isVouched && (reach.asked === undefined || reach.asked >= since)
  } satisfies Reach
})
