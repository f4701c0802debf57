import { Effect, Random, Schedule, Schema, Semaphore } from "effect"
import type { Broker } from "../broker/broker.ts"
import { BrokerError } from "../broker/broker-error.ts"
import { announcePresence } from "../cluster/enqueuer-presence.ts"
import { roundKey } from "../domain/delivery.ts"
import { partitionOf } from "../domain/names.ts"
import { getEndpoint } from "../endpoints/endpoint-store.ts"
import type { ClaimKind, Claims, ClaimsQuery } from "../history/claims.ts"
import { openClaims } from "../history/claims.ts"
import { eraseUnderWay, storeUnderWay } from "../history/rounds-under-way.ts"
import type { BackpressureLimits } from "./backpressure.ts"
import { defaultBackpressure, makeBackpressure } from "./backpressure.ts"
import type { Contents, Round, RoundTarget, StartedRound, SteadyLayout } from "./round.ts"
import { findRounds, makeStart } from "./round-start.ts"

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

interface RoundsOptions {
  readonly kind: Extract<ClaimKind, "redelivered" | "replayed">
  readonly target: RoundTarget
  readonly layout: SteadyLayout
  /** Who asked for it. */
  readonly by: string
  /** The rounds that are meant, as many as may be in memory. */
  readonly rounds: ReadonlyArray<Round>
  /**
   * Claims in the same name after this sequence of HISTORY are of the same work, which was broken
   * off. (Default: none is)
   */
  readonly ownAfter?: number | undefined
  /** None of them was claimed earlier: a sequence of HISTORY, or a time in ms since the epoch. */
  readonly from: ClaimsQuery["from"]
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
  const stop = (why: string, then = "") =>
    new RoundsStopped({
      message: `${tenant}/${endpoint} was ${why} meanwhile: nothing more is sent to it${then}`
    })
  const { endpoint: config } = yield* getEndpoint(tenant, endpoint).pipe(
    Effect.catchTags({
      EndpointNotFound: () => stop("removed"),
      EndpointUnreadable: () => stop("made unreadable")
    })
  )
  if (config.disabled !== undefined)
    return yield* stop(
      "disabled",
      `; enable it (\`petrel endpoint enable ${tenant}/${endpoint}\`), and the same again continues`
    )
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
  const { endpoint, tenant } = target
  const { layout, unchanged } = options.layout
  const instance = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  const behind = claims.last
  const safe = yield* announcePresence({
    instance,
    what: `a ${kind === "replayed" ? "replay" : "redelivery"} to ${tenant}/${endpoint}`,
    by,
    // Written again if it may have been taken for abandoned.
    returned: Effect.andThen(
      unchanged,
      storeUnderWay(instance, { kind, tenant, endpoint, behind, by })
    )
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
  const left = new Set(rounds.map(roundKey).filter((key) => claims.known.has(key)))
  /** Claimed by another one since these rounds were opened, which counts it. */
  const isTaken = (key: string) => !left.has(key) && claims.known.get(key)?.by !== by
  let inTheMiddle = 0
  const one = Effect.fnUntraced(function* (round: Round) {
    // Read before the claim: a claim without contents could not be finished.
    const contents = yield* withRetries(read(round))
    yield* Effect.uninterruptible(
      Effect.suspend(() => {
        inTheMiddle++
        return Effect.map(start(round, contents), (what) => {
          inTheMiddle--
          done(round, what === "finished" && isTaken(roundKey(round)) ? "before" : what)
        })
      })
    )
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
  ).pipe(
    Effect.ensuring(
      Effect.suspend(() =>
        inTheMiddle === 0 ? Effect.ignore(eraseUnderWay(instance)) : Effect.void
      )
    )
  )
}, Effect.scoped)

/**
 * Opens further rounds of one endpoint's deliveries, which may have begun before. For each round
 * that begins, first a fact (the claim) is stored, then the message, each exactly once. After a
 * crash in between, whoever comes next finds the claim without a message and stores the message or,
 * if the contents are gone, the round's end: another one who opens the round, or the worker that
 * finishes what others left (`finish-abandoned.ts`).
 */
export const openRounds = Effect.fnUntraced(function* (options: RoundsOptions) {
  const { by, from, kind, layout, ownAfter = Number.POSITIVE_INFINITY, rounds, target } = options
  const partition = partitionOf(target.tenant, target.endpoint, layout.layout.partitions)
  const names = new Set(rounds.map(({ round }) => round))
  let ahead = Number.POSITIVE_INFINITY
  const claims = yield* openClaims({
    kind,
    target,
    rounds: new Set(rounds.map(roundKey)),
    from,
    other: ({ round }, seq) => {
      if (names.has(round)) ahead = Math.min(ahead, seq)
    }
  })
  const missing = yield* unfinished(rounds, claims, target, partition)
  const fresh: Array<Round> = []
  const finishing: Array<Round> = []
  const before: Array<Round> = []
  const own: Array<Round> = []
  for (const round of rounds) {
    const key = roundKey(round)
    const claim = claims.known.get(key)
    if (claim === undefined) fresh.push(round)
    else if (missing.has(key)) finishing.push(round)
    else if (claim.seq > ownAfter && claim.by === by) own.push(round)
    else before.push(round)
  }
  return {
    /** Not begun yet. */
    fresh,
    /** Claimed, and not stored: their process died, or is about to store them. */
    finishing,
    /** Begun before, by other work. */
    before,
    /** Begun before by this work, until it was broken off. */
    own,

    /** Begins rounds, or finishes claimed ones. */
    beginAll: (rounds: ReadonlyArray<Round>, done: (round: Round, begun: StartedRound) => void) =>
      beginAll(options, claims, partition, rounds, done),

    /**
     * Returns a sequence of HISTORY before which there is no claim of another round of these names:
     * where whoever opens the next ones begins to read.
     */
    nextFrom: () => Math.min(ahead, claims.last + 1)
  }
})

export type OpenRounds = Effect.Success<ReturnType<typeof openRounds>>
