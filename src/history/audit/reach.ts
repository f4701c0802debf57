import type { StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { firstSince } from "../../broker/scan.ts"
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
  /** Since when all events and all facts are there, ms since the epoch; 0: since the beginning. */
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

/** The clocks of a cluster's nodes differ by less than this, ms. */
const clocksApart = 5 * 60_000

/**
 * Since when the plans of all events are there, where the history begins with a fact of that time:
 * an event and its plan are stored by different nodes.
 */
const plansSince = (time: number): number => (time === 0 ? 0 : time + clocksApart)

/** Since when nothing has left the beginning of a stream, ms since the epoch. */
const keptSince = ({ state }: StreamInfo): number =>
  state.first_seq <= 1 ? 0 : state.messages === 0 ? Date.now() : Date.parse(state.first_ts)

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
  const kept = Math.max(keptSince(events), plansSince(keptSince(history)))
  const begin = since ?? kept
  const firstKept = Math.max(1, events.state.first_seq)
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
      1,
      history.state.first_seq,
      since === undefined ? 1 : yield* firstSince(names.history, since - clocksApart)
    ),
    since: kept,
    asked: since,
    // A history that is empty now and was not once has nothing to say.
    isVouched: begin >= kept && (history.state.messages > 0 || history.state.last_seq === 0),
    routerFloor: router.ack_floor.stream_seq,
    lastEvent,
    clocksApart: events.cluster === undefined ? 0 : clocksApart
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
  const since = Math.max(reach.since, plansSince(first?.at ?? keptSince(history)))
  const firstEvent = Math.max(reach.scope.firstEvent, yield* firstSince(names.events, since))
  return {
    ...reach,
    since,
    scope: { ...reach.scope, firstEvent, isWhole: false },
    isVouched: reach.isVouched && (reach.asked === undefined || reach.asked >= since)
  } satisfies Reach
})
