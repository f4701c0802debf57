import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { headerOf } from "../broker/header-lookup.ts"
import { maxRoundSkewMs } from "../domain/clock-bounds.ts"
import { contentOf, eventId, eventName, parseEventSubject, subjectWithId } from "../domain/event.ts"
import { forwardedOf } from "../domain/forwarded-headers.ts"
import type { BackpressureLimits } from "./backpressure.ts"
import type { ReplayWish } from "./replay-record.ts"
import { beginReplay, findReplay, finishReplay } from "./replay-record.ts"
import type { ReplayQuery, SelectedEvent } from "./replay-selection.ts"
import { selectEvents } from "./replay-selection.ts"
import type { Contents, Round, StartedRound } from "./round.ts"
import { makeRounds } from "./rounds.ts"
import { steadyLayout } from "./steady-layout.ts"
import { readTarget } from "./target.ts"

export interface ReplayOptions
  extends ReplayWish,
    Pick<ReplayQuery, "event" | "types" | "skipped" | "onlyMissing"> {
  readonly pace?: BackpressureLimits | undefined
  /** Called with the number of deliveries that wait while throttled, and with 0 on resuming. */
  readonly held?: ((waiting: number) => void) | undefined
}

/** Returns the round of a replay. */
export const replayRound = (id: string): string => `r${id}`

const readEvent = Effect.fnUntraced(function* (
  { eventAt, eventSeq }: Round,
  forwards: ReadonlyArray<string>
) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage(`read event ${eventSeq}`, names.events, { seq: eventSeq })
  // If the stream was truncated, the sequence may hold another event.
  if (message === null || message.time.getTime() !== eventAt) return undefined
  const header = headerOf(message.header)
  const subject = subjectWithId(parseEventSubject(message.subject, names), header)
  if ("problem" in subject) return undefined
  const forwarded = forwardedOf(header, forwards)
  return {
    event: eventId(header("nats-msg-id"), eventSeq, eventAt),
    type: subject.type,
    content: { ...contentOf(header), ...(forwarded === undefined ? {} : { forwarded }) },
    body: message.data
  } satisfies Contents
})

const plan = Effect.fnUntraced(function* (
  options: ReplayOptions,
  { target, unfit }: Effect.Success<ReturnType<typeof readTarget>>,
  { record }: Effect.Success<ReturnType<typeof findReplay>>
) {
  const { by, endpoint, event, held, onlyMissing, pace, skipped, tenant, types } = options
  const round = replayRound(record.id)
  const { delivered, events, open, unrouted } =
    unfit === undefined
      ? yield* selectEvents({
          tenant,
          endpoint,
          event,
          types,
          since: record.since,
          until: record.until,
          skipped,
          onlyMissing,
          round
        })
      : { events: [], delivered: 0, open: 0, unrouted: 0 }
  const rounds = yield* makeRounds({
    kind: "replayed",
    target,
    layout: yield* steadyLayout,
    by,
    since: record.startedAt - maxRoundSkewMs,
    read: (round) => readEvent(round, target.forwards),
    pace,
    held: (waiting) => held?.(waiting)
  })
  const selected = events.map(({ eventAt, eventSeq }): Round => ({ eventSeq, eventAt, round }))
  const known = new Set(selected.map(eventName))
  // A claimed round gets its end even if its event or its endpoint is gone.
  const others = rounds.claimed().filter((one) => one.round === round && !known.has(eventName(one)))
  const { before, finishing, fresh } = yield* rounds.plan([...others, ...selected])
  const todo = [...finishing, ...fresh]
  const sending = new Set(todo.map(eventName))
  return {
    record,
    /** Why the endpoint accepts nothing. Claimed rounds are then finished, and none begins. */
    unfit,
    /** The events to send, in order. */
    events: events.filter((event): boolean => sending.has(eventName(event))),
    /** The number of events that this replay sent before it was interrupted. */
    before: before.length,
    delivered,
    open,
    unrouted,
    /** The number of rounds to begin or to finish. */
    count: todo.length,
    begin: (done: (begun: StartedRound) => void) =>
      Effect.andThen(
        rounds.beginAll(todo, (_, begun) => done(begun)),
        unfit === undefined ? finishReplay(options, record) : Effect.void
      )
  }
})

/** Plans a replay. Stores nothing. */
export const planReplay = Effect.fnUntraced(function* (options: ReplayOptions) {
  const target = yield* readTarget(options.tenant, options.endpoint)
  return yield* plan(options, target, yield* findReplay(options))
})

/**
 * Plans a replay and stores its record, so that the same request continues it after an
 * interruption.
 */
export const openReplay = Effect.fnUntraced(function* (options: ReplayOptions) {
  const target = yield* readTarget(options.tenant, options.endpoint)
  const found = yield* findReplay(options)
  const begun = target.unfit === undefined ? yield* beginReplay(options, found) : found
  return yield* plan(options, target, begun)
})

export type Replay = Effect.Success<ReturnType<typeof planReplay>>

/** Counts events by type, highest first. */
export const countTypes = (
  events: ReadonlyArray<SelectedEvent>
): ReadonlyArray<readonly [type: string, count: number]> => {
  const counts = new Map<string, number>()
  for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)
}
