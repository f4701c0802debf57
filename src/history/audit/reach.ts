import type { StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { consumerNotFound, ifFound } from "../../broker/broker-error.ts"
import { keptSince, undroppedSince } from "../../broker/kept-since.ts"
import { firstSince } from "../../broker/scan.ts"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import type { AuditProblem } from "./problem.ts"

/** The range of an audit. Sequences in EVENTS and times in ms since the epoch, all inclusive. */
export interface Scope {
  readonly firstEvent: number
  readonly lastEvent: number
  /**
   * The first event that is still stored. Whether an earlier one is in range depends on when its
   * rounds began.
   */
  readonly firstKept: number
  readonly since: number
  readonly until: number
  /** Audit only this tenant. */
  readonly tenant?: string | undefined
  /** True if no fact is gone that an outcome could refer to. */
  readonly isWhole: boolean
}

/** Where a stream begins, and since when nothing may be gone from it. */
export interface StreamBeginning {
  /** The first sequence that may still be stored. */
  readonly first: number
  /** Neither age nor size has dropped what was stored since then, ms since the epoch. */
  readonly dueSince: number
}

/** When a message was stored, ms since the epoch. */
export interface Mark {
  readonly seq: number
  readonly at: number
}

const hour = 3_600_000

/** Keeps the first message of each hour. They tell how old a removed message was. */
export const addMark = (marks: Array<Mark>, seq: number, at: number): void => {
  const last = marks.at(-1)
  if (last === undefined || at - last.at >= hour) marks.push({ seq, at })
}

/**
 * The first message that is gone and should not be; undefined if age or size explains all that is
 * gone.
 *
 * @param marks of the messages that were read.
 */
export const firstRemoved = (
  marks: ReadonlyArray<Mark>,
  { dueSince, first }: StreamBeginning
): number | undefined => marks.find(({ at, seq }) => seq < first && at >= dueSince)?.seq

/** Like {@link firstRemoved}; also drops the marks of messages that are gone. */
export const takeRemoved = (marks: Array<Mark>, begins: StreamBeginning): number | undefined => {
  const removed = firstRemoved(marks, begins)
  const kept = marks.findIndex(({ seq }) => seq >= begins.first)
  marks.splice(0, kept < 0 ? marks.length : kept)
  return removed
}

/** Why a gap at the beginning of a stream is a problem. */
export const goneTooEarly = "neither age nor size has dropped what was there"

/** The problem of facts that were read and are gone too early. */
export const factsGone = (from: number, to: number): AuditProblem => ({
  kind: "history-gap",
  seq: from,
  to,
  says: `${from === to ? `fact ${from} is` : `facts ${from} to ${to} are`} no longer in the history, though ${goneTooEarly}`
})

/** What to audit, by when the broker stored the events: ms since the epoch, inclusive. */
export interface AuditRange {
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** Audit only this tenant. */
  readonly tenant?: string | undefined
}

/** How much of a range the streams still cover, as of their leaders when the audit began. */
export interface AuditReach {
  readonly scope: Scope
  /** The first sequence of HISTORY whose fact may be about the range. */
  readonly firstFact: number
  readonly begins: { readonly events: StreamBeginning; readonly history: StreamBeginning }
  /**
   * Since when all events and facts are stored, or should be, ms since the epoch; 0 for the whole
   * streams.
   */
  readonly since: number
  /** Since when the plans of all events are stored, or should be, ms since the epoch; 0 for always. */
  readonly plansSince: number
  /** The requested beginning of the range, if any, ms since the epoch. */
  readonly asked: number | undefined
  /** True if the range begins no earlier than `since`. See also {@link reachesNoEvent}. */
  readonly isVouched: boolean
  /** The router has routed and acknowledged all events up to this sequence. */
  readonly routerFloor: number
  readonly lastEvent: number
  /** By how much the clocks of brokers may differ, ms. */
  readonly clocksApart: number
}

/** True if no range was requested, and the remaining facts reach back to none of the stored events. */
export const reachesNoEvent = ({ asked, begins, lastEvent, scope }: AuditReach): boolean =>
  asked === undefined && begins.events.first <= lastEvent && scope.firstEvent > lastEvent

/** Where a stream begins. Allows for differing clocks. */
const beginningOf = (info: StreamInfo): StreamBeginning => ({
  first: Math.max(1, info.state.first_seq),
  dueSince: undroppedSince(info) + 2 * maxClockSkewMs
})

/**
 * Since when the plans of all events are stored, or should be, in a history whose first fact has this
 * time. Different nodes store an event and its plan, so their clocks may differ.
 */
const plansSince = (firstAt: number, { dueSince }: StreamBeginning): number =>
  firstAt === 0 ? 0 : Math.min(firstAt + maxClockSkewMs, dueSince)

/** Converts a range to sequences, and checks whether the streams reach back far enough. */
export const readReach = Effect.fnUntraced(function* (range: AuditRange) {
  const { consumerInfo, names, streamInfo } = yield* Broker
  // Read the ack floor first: all events below it were routed before anything else is read.
  const router = yield* ifFound(
    consumerInfo("look at the router", names.events, names.routerConsumer),
    consumerNotFound
  )
  const look = (stream: string) => streamInfo(`look at ${stream}`, stream)
  const [events, history] = yield* Effect.all([look(names.events), look(names.history)])
  const { since, tenant, until } = range
  const begins = { events: beginningOf(events), history: beginningOf(history) }
  const planned = plansSince(keptSince(history), begins.history)
  const kept = Math.max(keptSince(events), planned)
  const begin = since ?? kept
  const isWhole = since === undefined && history.state.first_seq <= 1
  const firstEvent = Math.max(
    begins.events.first,
    yield* firstSince(names.events, Math.max(begin, kept))
  )
  const lastEvent = events.state.last_seq
  const reach: AuditReach = {
    scope: {
      firstEvent,
      lastEvent:
        until === undefined
          ? lastEvent
          : Math.min(lastEvent, (yield* firstSince(names.events, until + 1)) - 1),
      // What has expired since the stream was looked at is as what expired before.
      firstKept: isWhole ? firstEvent : begins.events.first,
      since: since ?? 0,
      until: until ?? Number.POSITIVE_INFINITY,
      tenant,
      isWhole
    },
    firstFact: Math.max(
      begins.history.first,
      since === undefined ? 1 : yield* firstSince(names.history, since - maxClockSkewMs)
    ),
    begins,
    since: kept,
    plansSince: planned,
    asked: since,
    // A history that has lost all its facts proves nothing.
    isVouched: begin >= kept && (history.state.messages > 0 || history.state.last_seq === 0),
    routerFloor: router?.ack_floor.stream_seq ?? 0,
    lastEvent,
    clocksApart: events.cluster?.name === undefined ? 0 : maxClockSkewMs
  }
  return reach
})

/**
 * Narrows the reach after the history was read: facts at its beginning may have expired before they
 * were read.
 *
 * @param first the sequence of the first fact that was read, and when it was stored, ms since the epoch.
 */
export const withoutExpired = Effect.fnUntraced(function* (
  reach: AuditReach,
  first: { readonly seq: number; readonly at: number } | undefined
) {
  if (first !== undefined && first.seq <= reach.firstFact) return reach
  const { names, streamInfo } = yield* Broker
  const history = yield* streamInfo("look at the history", names.history)
  if (history.state.first_seq <= reach.firstFact) return reach
  const begins = { ...reach.begins, history: beginningOf(history) }
  const planned = plansSince(first?.at ?? keptSince(history), begins.history)
  const since = Math.max(reach.since, planned)
  const firstEvent = Math.max(reach.scope.firstEvent, yield* firstSince(names.events, since))
  return {
    ...reach,
    begins,
    since,
    plansSince: planned,
    scope: { ...reach.scope, firstEvent, isWhole: false },
    isVouched: reach.isVouched && (reach.asked === undefined || reach.asked >= since)
  } satisfies AuditReach
})
