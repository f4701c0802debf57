import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { headerOf } from "../broker/headers.ts"
import { maxRoundSkewMs } from "../domain/clock-bounds.ts"
import { eventContentsIn, eventName } from "../domain/event.ts"
import type { BackpressureLimits } from "./backpressure.ts"
import type { ReplayRecord, ReplayWish } from "./replay-record.ts"
import { beginReplay, findReplay, finishReplay } from "./replay-record.ts"
import type { ReplayQuery, SelectedChunk } from "./replay-selection.ts"
import { selectChunk } from "./replay-selection.ts"
import type { Contents, Round, StartedRound } from "./round.ts"
import { readTarget, steadyLayout } from "./round.ts"
import type { OpenRounds } from "./rounds.ts"
import { openRounds } from "./rounds.ts"
import { inOneTurn } from "./turns.ts"

export interface ReplayOptions
  extends ReplayWish,
    Pick<ReplayQuery, "event" | "types" | "skipped" | "onlyMissing"> {
  /** See `RoundsOptions`. */
  readonly ownAfter?: number | undefined
  readonly pace?: BackpressureLimits | undefined
  /** Events that are in memory together. (Default: 20,000) */
  readonly chunk?: number | undefined
  /** Called with the number of deliveries that wait while throttled, and with 0 on resuming. */
  readonly held?: ((waiting: number) => void) | undefined
}

/** Returns the round of a replay. */
export const replayRound = (id: string): string => `r${id}`

/** Reads what a round of a replay sends; undefined if the event is gone. */
export const readEventContents = Effect.fnUntraced(function* (
  { eventAt, eventSeq }: Round,
  forwards: ReadonlyArray<string>
) {
  const { names, readMessage } = yield* Broker
  const message = yield* readMessage(`read event ${eventSeq}`, names.events, { seq: eventSeq })
  // If the stream was truncated, the sequence may hold another event.
  if (message === null || message.time.getTime() !== eventAt) return undefined
  const { data: body, header, seq, subject } = message
  const event = { subject, seq, at: eventAt, body }
  return eventContentsIn(event, headerOf(header), names, forwards) satisfies Contents | undefined
})

/** Where a replay goes on. All before it is done. */
export interface ReplayCursor {
  /** See `ChunkLimits`. */
  readonly after: number
  /** No later event was claimed before this sequence of HISTORY. */
  readonly from: number
}

/** What a replay leaves out. */
export interface ReplayTally {
  /** Sent by this replay before it was interrupted. */
  readonly before: number
  /** Sent by the same work before it was broken off. */
  readonly own: number
  readonly delivered: number
  readonly open: number
  readonly unrouted: number
}

export const noReplayTally: ReplayTally = {
  before: 0,
  own: 0,
  delivered: 0,
  open: 0,
  unrouted: 0
}

const defaultChunk = 20_000
/** Types that are counted by name. */
const maxTypes = 1_000

interface Setup {
  readonly options: ReplayOptions
  readonly target: Effect.Success<ReturnType<typeof readTarget>>
  readonly record: ReplayRecord
  readonly layout: Effect.Success<typeof steadyLayout>
}

/** Selects the next events, and opens their rounds. */
const openChunk = Effect.fnUntraced(function* (
  { layout, options, record, target: { target } }: Setup,
  cursor: ReplayCursor | undefined
) {
  const { by, chunk = defaultChunk, endpoint, event, held, onlyMissing, ownAfter, pace } = options
  const { skipped, tenant, types } = options
  const { since, startedAt, until } = record
  const round = replayRound(record.id)
  const query = { tenant, endpoint, event, types, since, until, skipped, onlyMissing, round }
  const selected = yield* selectChunk(query, { after: cursor?.after, most: chunk })
  const rounds = yield* openRounds({
    kind: "replayed",
    target,
    layout,
    by,
    rounds: selected.events.map(({ eventAt, eventSeq }): Round => ({ eventSeq, eventAt, round })),
    from:
      cursor === undefined ? { fromTime: startedAt - maxRoundSkewMs } : { fromSeq: cursor.from },
    read: (one) => readEventContents(one, target.forwards),
    ownAfter,
    pace,
    held: (waiting) => held?.(waiting)
  })
  return { selected, rounds }
}, inOneTurn)

const tallied = (
  tally: ReplayTally,
  { delivered, open, unrouted }: SelectedChunk,
  { before, own }: OpenRounds
): ReplayTally => ({
  before: tally.before + before.length,
  own: tally.own + own.length,
  delivered: tally.delivered + delivered,
  open: tally.open + open,
  unrouted: tally.unrouted + unrouted
})

/** Counts what a replay sends from a cursor on. */
const countAll = Effect.fnUntraced(function* (setup: Setup, from: ReplayCursor | undefined) {
  const types = new Map<string, number>()
  let otherTypes = 0
  let tally = noReplayTally
  let count = 0
  let cursor = from
  // An endpoint that accepts nothing begins no rounds.
  while (setup.target.unfit === undefined) {
    const { rounds, selected } = yield* openChunk(setup, cursor)
    tally = tallied(tally, selected, rounds)
    count += rounds.fresh.length + rounds.finishing.length
    const before = new Set([...rounds.before, ...rounds.own].map(eventName))
    for (const event of selected.events)
      if (!before.has(eventName(event))) {
        const known = types.get(event.type)
        if (known !== undefined || types.size < maxTypes) types.set(event.type, (known ?? 0) + 1)
        else otherTypes++
      }
    if (selected.next === undefined) break
    cursor = { after: selected.next, from: rounds.nextFrom() }
  }
  return {
    ...tally,
    record: setup.record,
    /** Why the endpoint accepts nothing. No round begins then. */
    unfit: setup.target.unfit,
    /** The number of rounds to begin or to finish. */
    count,
    /** The numbers of their types, highest first. */
    types: [...types].sort(([, a], [, b]) => b - a),
    /** The number of those of further types. */
    otherTypes
  }
})

/** Called when all before a cursor is done, with what was left out since the beginning. */
type OnReplayCursor = (cursor: ReplayCursor, tally: ReplayTally) => void

/** Sends from a cursor on. Returns what was left out. */
const sendAll = Effect.fnUntraced(function* (
  setup: Setup,
  from: ReplayCursor | undefined,
  done: (begun: StartedRound) => void,
  onCursor: OnReplayCursor
) {
  const { options, record, target } = setup
  let tally = noReplayTally
  let cursor = from
  if (target.unfit !== undefined) return tally
  while (true) {
    const { rounds, selected } = yield* openChunk(setup, cursor)
    tally = tallied(tally, selected, rounds)
    yield* rounds.beginAll([...rounds.finishing, ...rounds.fresh], (_, begun) => done(begun))
    if (selected.next === undefined) break
    cursor = { after: selected.next, from: rounds.nextFrom() }
    onCursor(cursor, tally)
  }
  yield* finishReplay(options, record)
  return tally
})

/** Plans a replay. Stores nothing. */
export const planReplay = Effect.fnUntraced(function* (options: ReplayOptions) {
  const target = yield* readTarget(options.tenant, options.endpoint)
  const { record } = yield* findReplay(options)
  return yield* countAll({ options, target, record, layout: yield* steadyLayout }, undefined)
})

/**
 * Plans a replay and stores its record, so that the same request continues it after an
 * interruption. Events are selected in chunks, twice: to count them, and to send them.
 *
 * @param from where it goes on, if it was interrupted and that is known.
 */
export const openReplay = Effect.fnUntraced(function* (
  options: ReplayOptions,
  from?: ReplayCursor | undefined
) {
  const target = yield* readTarget(options.tenant, options.endpoint)
  const found = yield* findReplay(options)
  const { record } = target.unfit === undefined ? yield* beginReplay(options, found) : found
  const setup: Setup = { options, target, record, layout: yield* steadyLayout }
  return {
    ...(yield* countAll(setup, from)),
    /** Sends them. Returns what was left out from where it went on. */
    begin: (done: (begun: StartedRound) => void, onCursor: OnReplayCursor = () => undefined) =>
      sendAll(setup, from, done, onCursor)
  }
})
