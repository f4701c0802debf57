import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage } from "../../broker/scan.ts"
import { contentOf, eventId, parseEventSubject } from "../../domain/event.ts"
import type { StoredEndpoint } from "../endpoints/endpoint-store.ts"
import { windowOf } from "../endpoints/live-endpoint.ts"
import { headerOf } from "../messages.ts"
import type { PaceLimits } from "./pace.ts"
import type { ReplayWish } from "./replay-record.ts"
import { beginReplay, findReplay, finishReplay } from "./replay-record.ts"
import type { ReplayQuery, SelectedEvent } from "./replay-selection.ts"
import { selectEvents } from "./replay-selection.ts"
import type { Begun, Contents, Round } from "./round.ts"
import { makeRounds } from "./rounds.ts"
import { steadyLayout } from "./steady-layout.ts"

/** The clocks of who replays and of the broker differ by less than this, ms. */
const clockSkew = 24 * 60 * 60_000

export interface ReplayOptions
  extends ReplayWish,
    Pick<ReplayQuery, "types" | "skipped" | "onlyMissing"> {
  readonly pace?: PaceLimits | undefined
  /** Told how many wait for the endpoint while it holds back, and 0 when it goes on. */
  readonly held?: ((waiting: number) => void) | undefined
}

/** The round of a replay. */
export const replayRound = (id: string): string => `r${id}`

const readEvent = Effect.fnUntraced(function* ({ eventSeq }: Round) {
  const { ask, jsm, names } = yield* Broker
  const message = yield* ask(`read event ${eventSeq}`, () =>
    jsm.streams.getMessage(names.events, { seq: eventSeq })
  ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null)))
  if (message === null) return undefined
  const subject = parseEventSubject(message.subject, names.eventRoot)
  if ("problem" in subject) return undefined
  const header = headerOf(message.header)
  return {
    event: eventId(header("nats-msg-id"), eventSeq),
    type: subject.type,
    content: contentOf(header),
    body: message.data
  } satisfies Contents
})

const plan = Effect.fnUntraced(function* (
  options: ReplayOptions,
  { endpoint: config, revision }: StoredEndpoint,
  { record }: Effect.Success<ReturnType<typeof findReplay>>
) {
  const { by, endpoint, held, onlyMissing, pace, skipped, tenant, types } = options
  const round = replayRound(record.id)
  const { delivered, events, open, unrouted } = yield* selectEvents({
    tenant,
    endpoint,
    types,
    since: record.since,
    until: record.until,
    skipped,
    onlyMissing,
    round
  })
  const rounds = yield* makeRounds({
    kind: "replayed",
    target: {
      tenant,
      endpoint,
      generation: config.generation,
      revision,
      window: windowOf(config)
    },
    layout: yield* steadyLayout,
    by,
    since: record.startedAt - clockSkew,
    read: readEvent,
    pace,
    held: (waiting) => held?.(waiting)
  })
  const selected = events.map(({ eventSeq }): Round => ({ eventSeq, round }))
  const known = new Set(selected.map(({ eventSeq }) => eventSeq))
  // What was claimed has its end, also where its event is not kept any more.
  const gone = rounds.claimed().filter((one) => one.round === round && !known.has(one.eventSeq))
  const { before, finishing, fresh } = yield* rounds.plan([...gone, ...selected])
  const todo = [...finishing, ...fresh]
  const sending = new Set(todo.map(({ eventSeq }) => eventSeq))
  return {
    record,
    /** What there is to send, in the order of the events. */
    events: events.filter(({ eventSeq }): boolean => sending.has(eventSeq)),
    /** Sent by this replay before it was broken off. */
    before: before.length,
    delivered,
    open,
    unrouted,
    begin: (done: (begun: Begun) => void) =>
      rounds
        .beginAll(todo, (_, begun) => done(begun))
        .pipe(Effect.andThen(finishReplay(options, record)))
  }
})

/** What there is to replay, as it is now; nothing is stored. */
export const planReplay = Effect.fnUntraced(function* (
  options: ReplayOptions,
  stored: StoredEndpoint
) {
  return yield* plan(options, stored, yield* findReplay(options))
})

/**
 * The same, stored: whoever asks for the same after it was broken off goes on with the same events.
 */
export const openReplay = Effect.fnUntraced(function* (
  options: ReplayOptions,
  stored: StoredEndpoint
) {
  const found = yield* beginReplay(options, yield* findReplay(options))
  return yield* plan(options, stored, found)
})

export type Replay = Effect.Success<ReturnType<typeof planReplay>>

/** How many there are of each type, the most first. */
export const countTypes = (
  events: ReadonlyArray<SelectedEvent>
): ReadonlyArray<readonly [type: string, count: number]> => {
  const counts = new Map<string, number>()
  for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)
}
