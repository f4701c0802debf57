import { createHash } from "node:crypto"
import { Clock, Effect, Schema } from "effect"
import { Invalid, invalid } from "../../domain/problem.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import type { Replay, ReplayOptions } from "../../rounds/replay.ts"
import { countTypes, openReplay, planReplay } from "../../rounds/replay.ts"
import type { RoundCounts, StartedRound } from "../../rounds/round.ts"
import type { EndpointName } from "../endpoints/endpoint-settings.ts"
import { endpointLabel } from "../endpoints/endpoint-settings.ts"
import type { ReplayRequest } from "./replay-request.ts"
import { replayProblems } from "./replay-request.ts"

const selected = {
  id: Schema.String,
  /** The time that is replayed, ms since the epoch. */
  since: Schema.Number,
  until: Schema.Number,
  /** Left out: sent by this replay before. */
  before: Schema.Int,
  /** Left out: the endpoint has taken them. */
  delivered: Schema.Int,
  /** Left out: on their way there already. */
  underWay: Schema.Int,
  /** Left out: workers are still to route them. */
  unrouted: Schema.Int
}

/** What a replay leaves out. */
export const ReplaySelection = Schema.Struct(selected)
export type ReplaySelection = typeof ReplaySelection.Type

/** What a replay would send. */
export const ReplayPlan = Schema.Struct({
  ...selected,
  replay: Schema.Int,
  /** Events by type, highest first. */
  types: Schema.Record(Schema.String, Schema.Int)
})
export type ReplayPlan = typeof ReplayPlan.Type

/** What a replay did. */
export const Replayed = Schema.Struct({
  ...selected,
  replayed: Schema.Int,
  /** Left out: too old and not kept any more. */
  gone: Schema.Int
})
export type Replayed = typeof Replayed.Type

/** How a replay is watched. */
export interface ReplayWatch {
  /** Who asks for it, recorded in the history. */
  readonly by: string
  /** Called with the number of deliveries that wait for the endpoint while it is throttled, and 0. */
  readonly held?: ((waiting: number) => void) | undefined
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

/** The event of this id was never stored, or is not kept any more. */
export class EventNotKept extends Schema.TaggedError<EventNotKept>()("EventNotKept", {
  tenant: Schema.String,
  event: Schema.String
}) {
  override get message() {
    return `there is no event ${this.event} of ${this.tenant}, or it is not kept any more: events are removed after a while (7 days by default); a dead letter keeps its body for longer, see \`petrel dead list\``
  }
}

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
    return yield* invalid(
      "",
      `${label} is disabled and takes nothing: put it back to work first, with \`petrel endpoint enable ${label}\``
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

const optionsOf = Effect.fnUntraced(function* (request: ReplayRequest, { by, held }: ReplayWatch) {
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
    by,
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

const selectionOf = ({ before, delivered, open, record, unrouted }: Replay): ReplaySelection => ({
  id: record.id,
  since: record.since,
  until: record.until,
  before,
  delivered,
  underWay: open,
  unrouted
})

/** Returns what a replay would send. Nothing is stored. */
export const previewReplay = Effect.fnUntraced(function* (request: ReplayRequest, by: string) {
  const options = yield* optionsOf(request, { by })
  yield* refuseUnfit(request.to)
  const replay = yield* planReplay(options)
  return {
    ...selectionOf(replay),
    replay: replay.events.length,
    types: Object.fromEntries(countTypes(replay.events))
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
  const options = yield* optionsOf(request, watch)
  yield* refuseUnknown(options)
  const replay = yield* openReplay(options)
  return {
    id: replay.record.id,
    /** The number of events that `run` handles. */
    count: replay.count,
    /** @param progress called after each event. */
    run: Effect.fnUntraced(function* (progress: (counts: RoundCounts) => void = () => {}) {
      const counts: Record<StartedRound, number> = { begun: 0, finished: 0, before: 0, gone: 0 }
      yield* replay.begin((begun) => {
        counts[begun]++
        progress(counts)
      })
      if (replay.unfit !== undefined) yield* refuseUnfit(request.to)
      return {
        ...selectionOf(replay),
        replayed: counts.begun + counts.finished,
        gone: counts.gone
      } satisfies Replayed
    })
  }
})
