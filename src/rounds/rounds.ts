import { Effect, Schedule, Schema, Semaphore } from "effect"
import type { Broker } from "../broker/broker.ts"
import { BrokerError } from "../broker/broker-error.ts"
import { announcePresence } from "../cluster/enqueuer-presence.ts"
import { readRoundKey, roundKey } from "../domain/delivery.ts"
import { partitionOf } from "../domain/names.ts"
import { getEndpoint } from "../endpoints/endpoint-store.ts"
import type { ClaimKind, Claims } from "../history/claims.ts"
import { openClaims } from "../history/claims.ts"
import type { BackpressureLimits } from "./backpressure.ts"
import { defaultBackpressure, makeBackpressure } from "./backpressure.ts"
import type { Contents, Round, RoundTarget, StartedRound } from "./round.ts"
import { findRounds } from "./round-search.ts"
import { makeStart } from "./round-start.ts"
import type { SteadyLayout } from "./steady-layout.ts"

/** Rounds of one endpoint that are begun concurrently. Their bodies are in memory. */
const maxConcurrentRounds = 16
/** How often, and after which pause (ms), a request without an answer is repeated. */
const retries = { times: 6, pause: 500 }

/** Repeats a request while the broker restarts, so that a long operation survives it. */
const withRetries = <A, E, R>(asking: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(asking, {
    times: retries.times,
    schedule: Schedule.spaced(retries.pause),
    while: (error) => error instanceof BrokerError && error.code === undefined
  })

export interface RoundsOptions {
  readonly kind: Extract<ClaimKind, "redelivered" | "replayed">
  readonly target: RoundTarget
  readonly layout: SteadyLayout
  /** Who asked for it. */
  readonly by: string
  /** None of these rounds began earlier, ms since the epoch. */
  readonly since: number
  /** Reads what a round sends; undefined if it is gone. */
  readonly read: (round: Round) => Effect.Effect<Contents | undefined, BrokerError, Broker>
  readonly pace?: BackpressureLimits | undefined
  /** Called with the number of waiting deliveries while it is throttled, and with 0 on resuming. */
  readonly held: (waiting: number) => void
}

/** The rounds cannot continue. The message says what to do. */
export class RoundsStopped extends Schema.TaggedError<RoundsStopped>()("RoundsStopped", {
  message: Schema.String
}) {}

/** Fails if the endpoint accepts nothing any more: each delivery would be dead-lettered. */
const stillTakes = Effect.fnUntraced(function* ({ endpoint, generation, tenant }: RoundTarget) {
  const stop = (why: string) =>
    new RoundsStopped({
      message: `${tenant}/${endpoint} was ${why} meanwhile: nothing more is sent to it; run the same command again to go on`
    })
  const { endpoint: config } = yield* getEndpoint(tenant, endpoint).pipe(
    Effect.catchTags({
      EndpointNotFound: () => stop("removed"),
      EndpointUnreadable: () => stop("made unreadable")
    })
  )
  if (config.disabled !== undefined) return yield* stop("disabled")
  if (config.generation !== generation) return yield* stop("replaced by another of its name")
})

/** Returns the keys of the claimed rounds that have no message. */
const unfinished = Effect.fnUntraced(function* (
  rounds: ReadonlyArray<Round>,
  claims: Claims,
  target: RoundTarget,
  partition: number
) {
  const claimed = rounds.map(roundKey).filter((key) => claims.known.has(key))
  if (claimed.length === 0) return new Set<string>()
  const first = claimed.reduce(
    (least, key) => Math.min(least, claims.known.get(key)?.seq ?? least),
    Number.POSITIVE_INFINITY
  )
  const found = yield* findRounds(target, partition, new Set(claimed), first)
  return new Set(claimed.filter((key) => !found.has(key)))
})

/** Begins rounds, or finishes claimed ones, under backpressure. Stops between two of them. */
const beginAll = Effect.fnUntraced(function* (
  options: RoundsOptions,
  claims: Claims,
  partition: number,
  rounds: ReadonlyArray<Round>,
  done: (round: Round, begun: StartedRound) => void
) {
  if (rounds.length === 0) return
  const { by, held, kind, read, target } = options
  const { layout, unchanged } = options.layout
  const safe = yield* announcePresence({
    what: `a ${kind === "replayed" ? "replay" : "redelivery"} to ${target.tenant}/${target.endpoint}`,
    by,
    unchanged
  })
  const start = yield* makeStart({ by, target, layout, partition, claims, safe })
  let isNew = false
  const pace = yield* makeBackpressure({
    target,
    partition,
    limits: options.pace ?? defaultBackpressure,
    held,
    // A claimed round gets its end even if its endpoint is gone.
    look: Effect.suspend(() => (isNew ? stillTakes(target) : Effect.void))
  })
  const turn = yield* Semaphore.make(1)
  const one = Effect.fnUntraced(function* (round: Round) {
    // Read before the claim: a claim without contents could not be finished.
    const contents = yield* withRetries(read(round))
    yield* Effect.uninterruptible(Effect.map(start(round, contents), (what) => done(round, what)))
  })
  yield* Effect.forEach(
    rounds,
    (round) =>
      Effect.andThen(
        turn.withPermit(
          Effect.suspend(() => {
            isNew = !claims.known.has(roundKey(round))
            return withRetries(pace.next)
          })
        ),
        one(round)
      ),
    { concurrency: maxConcurrentRounds, discard: true }
  )
}, Effect.scoped)

/**
 * Begins further rounds of one endpoint's deliveries. For each round it stores first a fact (the
 * claim), then the message, each exactly once. After a crash in between, the next run finds the
 * claim without a message and stores the message or, if the contents are gone, the round's end.
 */
export const makeRounds = Effect.fnUntraced(function* (options: RoundsOptions) {
  const { kind, layout, target } = options
  const partition = partitionOf(target.tenant, target.endpoint, layout.layout.partitions)
  const claims = yield* openClaims(kind, target, options.since)
  return {
    /** Returns what is to be done about rounds that may have begun before. */
    plan: Effect.fnUntraced(function* (rounds: ReadonlyArray<Round>) {
      const missing = yield* unfinished(rounds, claims, target, partition)
      const fresh: Array<Round> = []
      const finishing: Array<Round> = []
      const before: Array<Round> = []
      for (const round of rounds) {
        const key = roundKey(round)
        if (!claims.known.has(key)) fresh.push(round)
        else if (missing.has(key)) finishing.push(round)
        else before.push(round)
      }
      return { fresh, finishing, before }
    }),

    /** Returns the rounds that any process has claimed. */
    claimed: (): ReadonlyArray<Round> =>
      [...claims.known.keys()].flatMap((key) => readRoundKey(key) ?? []),

    /** Begins rounds, or finishes claimed ones. */
    beginAll: (rounds: ReadonlyArray<Round>, done: (round: Round, begun: StartedRound) => void) =>
      beginAll(options, claims, partition, rounds, done)
  }
})

export type Rounds = Effect.Success<ReturnType<typeof makeRounds>>
