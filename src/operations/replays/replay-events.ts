import { createHash } from "node:crypto"
import { Clock, Effect, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { undroppedSince } from "../../broker/kept-since.ts"
import { EndpointName, endpointLabel } from "../../domain/endpoint.ts"
import type { Problem } from "../../domain/problem.ts"
import { Invalid, notNow } from "../../domain/problem.ts"
import { Types } from "../../domain/settings/endpoint-table.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { isToken } from "../../domain/token.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import type { ReplayOptions, ReplayTally } from "../../rounds/replay.ts"
import { noReplayTally, openReplay, planReplay } from "../../rounds/replay.ts"
import type { ReplayRecord } from "../../rounds/replay-record.ts"
import { findReplay } from "../../rounds/replay-record.ts"
import type { RoundCounts, StartedRound } from "../../rounds/round.ts"
import { rangeProblems } from "../parameters.ts"
import { EventNotKept } from "../refusals.ts"

/** Longest name of a replay, characters. */
const maxReplayId = 40

/** Returns why a replay cannot have a name, or undefined. */
export const replayIdProblem = (id: string): string | undefined =>
  isToken(id) && id.length <= maxReplayId ? undefined : "must be 1 to 40 letters, digits, - or _"

/** The name of a replay: the same again goes on with it. */
const ReplayId = Schema.String.check(
  Schema.makeFilter(replayIdProblem, {
    toJsonSchema: () => ({ pattern: `^(?!_$)[A-Za-z0-9_-]{1,${maxReplayId}}$` })
  })
)

/** Longest id of an event, in characters. */
const maxEventIdLength = 255

/** Which events of the past are sent to an endpoint. Times in ms since the epoch. */
export const ReplayRequest = Schema.Struct({
  to: EndpointName,
  event: Schema.optional(
    Schema.NonEmptyString.check(Schema.isMaxLength(maxEventIdLength))
  ).annotateKey({ description: "Only the event of this id. (Default: all)" }),
  types: Schema.optional(Types).annotateKey({
    description:
      "NATS wildcards, of which one must match. (Default: the types that the endpoint wants; of one event, any)"
  }),
  since: Schema.optional(Timestamp).annotateKey({
    description: "Events stored then or later. (Default: all there are)"
  }),
  until: Schema.optional(Timestamp).annotateKey({
    description: "Events stored then or earlier. (Default: now)"
  }),
  skipped: Schema.optional(Schema.Boolean).annotateKey({
    description: "Only events that were skipped because the endpoint was disabled."
  }),
  onlyMissing: Schema.optional(Schema.Boolean).annotateKey({
    description: "Leave out events that the endpoint has taken or that are on their way there."
  }),
  id: Schema.optional(ReplayId).annotateKey({
    description: "(Default: made from the other fields)"
  }),
  asked: Schema.optional(Schema.String).annotateKey({
    description:
      "What was asked for, literally, if the times above were computed from it: `1h` asks for the same an hour later. (Default: the fields themselves)"
  })
})
export type ReplayRequest = typeof ReplayRequest.Type

/** Returns what is wrong with a request. */
export const replayProblems = (
  { event, onlyMissing, since, skipped, until }: Omit<ReplayRequest, "to">,
  now: number
): ReadonlyArray<Problem> => {
  if (event !== undefined && (skipped === true || onlyMissing === true))
    return [
      {
        field: "event",
        message: "names one event: leave out `skipped` and `onlyMissing`, which choose among many"
      }
    ]
  return rangeProblems({ since, until }, now)
}

const selected = {
  id: Schema.String.annotateKey({ description: "The id of the replay." }),
  since: Timestamp.annotateKey({ description: "The time that is replayed." }),
  until: Timestamp.annotateKey({ description: "Up to when." }),
  before: Schema.Int.annotateKey({ description: "Left out: sent by this replay before." }),
  delivered: Schema.Int.annotateKey({ description: "Left out: the endpoint has taken them." }),
  underWay: Schema.Int.annotateKey({ description: "Left out: on their way there already." }),
  unrouted: Schema.Int.annotateKey({ description: "Left out: workers have yet to route them." })
}

/** What a replay leaves out. */
export const ReplaySelection = Schema.Struct(selected)
export type ReplaySelection = typeof ReplaySelection.Type

/** What a replay would send. */
export const ReplayPlan = Schema.Struct({
  ...selected,
  replay: Schema.Int.annotateKey({ description: "Deliveries that it begins." }),
  types: Schema.Record(Schema.String, Schema.Int).annotateKey({
    description: "Events by type, highest first; at most 1,000 types."
  }),
  otherTypes: Schema.Int.annotateKey({ description: "Events of further types." })
})
export type ReplayPlan = typeof ReplayPlan.Type

/** What a replay did. */
export const Replayed = Schema.Struct({
  ...selected,
  replayed: Schema.Int,
  gone: Schema.Int.annotateKey({ description: "Left out: too old and no longer kept." })
})
export type Replayed = typeof Replayed.Type

/** Where a replay goes on, and what it did before. */
export const ReplayCursor = Schema.Struct({
  after: Schema.Int.annotateKey({
    description: "Of EVENTS or, for what was skipped, of HISTORY: all up to it is done."
  }),
  from: Schema.Int.annotateKey({
    description: "None of what is left was claimed before this sequence of HISTORY."
  }),
  done: Replayed
})
export type ReplayCursor = typeof ReplayCursor.Type

/** How a replay is watched. */
interface ReplayWatch {
  /** Who asks for it, recorded in the history. */
  readonly by: string
  /** Called with the number of deliveries that wait for the endpoint while it is throttled, and 0. */
  readonly held?: ((waiting: number) => void) | undefined
  /** Where it goes on, if it was interrupted and that is known. */
  readonly from?: ReplayCursor | undefined
  /** Called when all before a cursor is done. */
  readonly onCursor?: ((cursor: ReplayCursor) => void) | undefined
  /** When the job was made that does it, ms since the epoch. */
  readonly askedAt?: number | undefined
  /** The last fact there was before: what was sent in the same name since is its own. */
  readonly ownAfter?: number | undefined
  /** Events that are in memory together. (Default: 20,000) */
  readonly chunk?: number | undefined
}

/** Identifies what is asked for. */
const fingerprint = ({
  asked,
  event,
  onlyMissing,
  since,
  skipped,
  to,
  types,
  until
}: ReplayRequest) =>
  createHash("sha256")
    .update(
      JSON.stringify([
        to.tenant,
        to.id,
        types?.toSorted(),
        ...(asked === undefined ? [since, until] : [asked]),
        skipped === true,
        onlyMissing === true,
        ...(event === undefined ? [] : [event])
      ])
    )
    .digest("hex")
    .slice(0, 10)

/** Fails if one event is asked for that is not there. Nothing is stored then. */
const refuseUnknown = Effect.fnUntraced(function* (options: ReplayOptions) {
  const { event, tenant } = options
  if (event === undefined) return
  const { before, count, unfit } = yield* planReplay(options)
  if (count + before === 0 && unfit === undefined) return yield* new EventNotKept({ tenant, event })
})

/** Fails if the endpoint accepts no deliveries. */
const refuseUnfit = Effect.fnUntraced(function* (name: EndpointName) {
  const { endpoint } = yield* getEndpoint(name.tenant, name.id)
  const label = endpointLabel(name)
  if (endpoint.disabled !== undefined)
    return yield* notNow(
      `${label} is disabled and takes nothing: enable it first (\`petrel endpoint enable ${label}\`)`
    )
})

/** Returns the endpoint's subscribed types; empty if it does not exist. */
const typesOf = ({ id, tenant }: EndpointName) =>
  getEndpoint(tenant, id).pipe(
    Effect.map(({ endpoint }): ReadonlyArray<string> => endpoint.types),
    Effect.catchTags({
      EndpointNotFound: () => Effect.succeed([]),
      EndpointUnreadable: () => Effect.succeed([])
    })
  )

const optionsOf = Effect.fnUntraced(function* (
  request: ReplayRequest,
  { askedAt, by, chunk, held, ownAfter }: ReplayWatch
) {
  const now = yield* Clock.currentTimeMillis
  const problems = replayProblems(request, now)
  if (problems.length > 0) return yield* new Invalid({ problems })
  const { event, id, onlyMissing = false, since = 0, skipped = false, to, until = now } = request
  const asked = fingerprint(request)
  return {
    tenant: to.tenant,
    endpoint: to.id,
    name: id ?? asked,
    asked,
    askedAt,
    ownAfter,
    by,
    chunk,
    event,
    types: request.types ?? (skipped || event !== undefined ? [">"] : yield* typesOf(to)),
    since,
    until,
    skipped,
    onlyMissing,
    mayFollow: skipped || onlyMissing,
    held
  } satisfies ReplayOptions
})

const selectionOf = (
  { id, since, until }: ReplayRecord,
  { before, delivered, open, unrouted }: ReplayTally
): ReplaySelection => ({ id, since, until, before, delivered, underWay: open, unrouted })

/** Fails with what speaks against a replay at once. Nothing is selected, nor stored. */
export const checkReplay = Effect.fnUntraced(function* (request: ReplayRequest, by: string) {
  const options = yield* optionsOf(request, { by })
  yield* refuseUnfit(request.to)
  yield* findReplay(options)
})

/**
 * Returns since when no event has become too old, where a replay asks for earlier ones, ms since the
 * epoch: of what came before, it can send only what is left. Undefined where it asks for none.
 */
export const eventsKeptSince = Effect.fnUntraced(function* ({ event, since }: ReplayRequest) {
  if (event !== undefined || since === undefined) return undefined
  const { names, streamInfo } = yield* Broker
  const kept = undroppedSince(yield* streamInfo("look at the events", names.events))
  return since < kept ? kept : undefined
})

/** Returns what a replay would send. Nothing is stored. */
export const previewReplay = Effect.fnUntraced(function* (request: ReplayRequest, by: string) {
  const options = yield* optionsOf(request, { by })
  yield* refuseUnfit(request.to)
  const replay = yield* planReplay(options)
  return {
    ...selectionOf(replay.record, replay),
    replay: replay.count,
    types: Object.fromEntries(replay.types),
    otherTypes: replay.otherTypes
  } satisfies ReplayPlan
})

/**
 * Opens a replay: what it sends is fixed from then on. `run` sends the events, at the endpoint's
 * pace. Broken off, the same request goes on where it was.
 */
export const startReplay = Effect.fnUntraced(function* (
  request: ReplayRequest,
  watch: ReplayWatch
) {
  const { from, onCursor } = watch
  const options = yield* optionsOf(request, watch)
  if (from === undefined) yield* refuseUnknown(options)
  const replay = yield* openReplay(options, from)
  const { record } = replay
  return {
    id: record.id,
    /** The number of events that `run` handles. */
    count: replay.count,
    /** The number of those that it sent before it was interrupted. */
    before: replay.before + replay.own,
    /** @param progress called after each event. */
    run: Effect.fnUntraced(function* (progress: (counts: RoundCounts) => void = () => {}) {
      const counts: Record<StartedRound, number> = { begun: 0, finished: 0, before: 0, gone: 0 }
      const doneBy = (tally: ReplayTally) => added(from?.done, record, tally, counts)
      const tally = yield* replay.begin(
        (begun) => {
          counts[begun]++
          progress(counts)
        },
        (cursor, tally) => onCursor?.({ ...cursor, done: doneBy(tally) })
      )
      if (replay.unfit !== undefined) yield* refuseUnfit(request.to)
      return doneBy(tally)
    })
  }
})

/** Adds what was done since a cursor to what was done before. */
const added = (
  before: Replayed | undefined,
  record: ReplayRecord,
  tally: ReplayTally,
  counts: RoundCounts
): Replayed => {
  const now = selectionOf(record, tally)
  const earlier = before ?? { ...selectionOf(record, noReplayTally), replayed: 0, gone: 0 }
  return {
    ...now,
    before: earlier.before + now.before + counts.before,
    delivered: earlier.delivered + now.delivered,
    underWay: earlier.underWay + now.underWay,
    unrouted: earlier.unrouted + now.unrouted,
    replayed: earlier.replayed + tally.own + counts.begun + counts.finished,
    gone: earlier.gone + counts.gone
  }
}
