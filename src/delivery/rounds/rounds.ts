import { Clock, Effect, Schedule, Schema, Semaphore } from "effect"
import { Broker, BrokerError } from "../../broker/connection.ts"
import { makeGate } from "../../broker/gate.ts"
import type { PublishError } from "../../broker/publisher.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { deliveryHeaders, deliveryId, untried } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import type { Claim, ClaimKind } from "../../history/claims.ts"
import { claimKey, openClaims } from "../../history/claims.ts"
import { Checkpoint } from "../checkpoint.ts"
import { getEndpoint } from "../endpoints/endpoint-store.ts"
import { storeOnce } from "../memory/store-once.ts"
import type { PaceLimits } from "./pace.ts"
import { makePace, usualPace } from "./pace.ts"
import { findRounds } from "./round-search.ts"
import type { SteadyLayout } from "./steady-layout.ts"

/** Rounds of one endpoint that are begun at the same time: so many bodies are in memory. */
const atOnce = 16
/** How often, and at what intervals (ms), the broker is asked again that did not answer. */
const askAgain = { times: 6, pause: 500 }

/** Waits out a broker that is restarted: what has begun is not to end with it. */
const patiently = <A, E, R>(asking: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.retry(asking, {
    times: askAgain.times,
    schedule: Schedule.spaced(askAgain.pause),
    while: (error) => error instanceof BrokerError && error.code === undefined
  })

/** What tells a further round of an endpoint's deliveries from others. */
export interface Round extends Pick<Delivery, "eventSeq" | "round"> {
  /** Sequence in DEAD of what is sent again. */
  readonly dead?: number
}

/** What a round sends. */
export interface Contents extends Pick<Delivery, "event" | "type" | "content" | "origin"> {
  readonly body: Uint8Array
}

/**
 * What came of it: the round was `begun`, somebody had claimed and not stored it (`finished`), it
 * had begun before, or there is nothing left to send.
 */
export type Begun = "begun" | "finished" | "before" | "gone"

/** To which endpoint, as it is configured now; the generation of one that is gone is that of its deliveries. */
export interface Target {
  readonly tenant: string
  readonly endpoint: string
  readonly generation: string
  readonly revision: number
  /** From the start of a round to its deadline, ms. */
  readonly window: number
}

export interface RoundsOptions {
  readonly kind: Extract<ClaimKind, "redelivered" | "replayed">
  readonly target: Target
  readonly layout: SteadyLayout
  /** Who asked for it. */
  readonly by: string
  /** No round of these was begun before, ms since the epoch. */
  readonly since: number
  /** Reads what a round sends; undefined where it is gone. */
  readonly read: (round: Round) => Effect.Effect<Contents | undefined, BrokerError, Broker>
  readonly pace?: PaceLimits | undefined
  /** Told how many wait while it holds back, and 0 when it goes on. */
  readonly held: (waiting: number) => void
}

/** It does not go on: whoever asked is told what to do. */
export class RoundsStopped extends Schema.TaggedError<RoundsStopped>()("RoundsStopped", {
  message: Schema.String
}) {}

/**
 * Begins further rounds of one endpoint's deliveries: for each a fact, told once for ever (the
 * claim), then the message, stored once. After a crash in between whoever runs it again finds the
 * claim without a message, and stores that.
 */
export const makeRounds = Effect.fnUntraced(function* (options: RoundsOptions) {
  const { by, kind, target } = options
  const { layout, unchanged } = options.layout
  const { endpoint, tenant } = target
  const broker = yield* Broker
  const { names, publisher } = broker
  const clock = yield* Clock.Clock
  const reached = yield* Checkpoint
  const partition = partitionOf(tenant, endpoint, layout.partitions)
  const claims = yield* openClaims(kind, target, options.since)
  const gate = makeGate(
    "the broker takes no deliveries: waiting until it does",
    "the broker takes deliveries again"
  )
  /** Beyond it the broker may have forgotten what it has stored already: that is looked for then. */
  const patience = layout.moveDedupe / 2

  const deliveryOf = (
    { eventSeq, round }: Round,
    contents: Contents,
    began: number,
    deadline: number
  ): Delivery => {
    const { body: _, ...known } = contents
    const { generation, revision } = target
    return {
      tenant,
      endpoint,
      eventSeq,
      round,
      ...known,
      began,
      deadline,
      generation,
      revision,
      progress: untried
    }
  }

  /** @param tried whether somebody may have stored it before. */
  const store = (delivery: Delivery, body: Uint8Array, claim: number, tried: boolean) => {
    const { eventSeq, round } = delivery
    const key = claimKey(delivery)
    const subject = names.subjects.delivery(partition, tenant, endpoint)
    const messageId = `${eventSeq}.${round}.${endpoint}`
    const publish = publisher.publish(subject, body, deliveryHeaders(delivery, messageId))
    const find = Effect.map(
      findRounds(target, partition, new Set([key]), claim),
      (found) => found.size > 0
    ).pipe(Effect.provideService(Broker, broker))
    return Effect.map(gate.within(patience, storeOnce(publish, find, tried)), () =>
      reached("round-stored")
    )
  }

  const factOf = (delivery: Delivery, dead: number | undefined) => {
    const { content, deadline, event, eventSeq, round, type } = delivery
    return {
      tenant,
      endpoint,
      event,
      eventSeq,
      type,
      delivery: deliveryId(delivery),
      round,
      deadline,
      ...(dead === undefined ? {} : { dead }),
      by,
      ...(content.traceparent === undefined ? {} : { trace: content.traceparent })
    } satisfies Partial<Fact>
  }

  const begin = Effect.fnUntraced(function* (round: Round, contents: Contents) {
    const began = clock.currentTimeMillisUnsafe()
    const delivery = deliveryOf(round, contents, began, began + target.window)
    const since = performance.now()
    const claimed = yield* claims.claim(factOf(delivery, round.dead), delivery)
    if (claimed === "taken") return "before"
    reached("round-claimed")
    const isSure = claimed === "mine" && performance.now() - since < patience
    const claim = claims.known.get(claimKey(delivery))
    yield* store(delivery, contents.body, claim?.seq ?? 0, !isSure)
    return "begun"
  })

  /** What was claimed stands: its deadline, too. */
  const finish = (round: Round, contents: Contents, { fact, seq }: Claim) => {
    const delivery = deliveryOf(round, contents, fact.at, fact.deadline ?? fact.at)
    return Effect.as(store(delivery, contents.body, seq, true), "finished" as const)
  }

  /** Of those claimed before, the ones that have no message. */
  const unfinished = Effect.fnUntraced(function* (rounds: ReadonlyArray<Round>) {
    const claimed = rounds.map(claimKey).filter((key) => claims.known.has(key))
    if (claimed.length === 0) return new Set<string>()
    const first = claimed.reduce(
      (least, key) => Math.min(least, claims.known.get(key)?.seq ?? least),
      Number.POSITIVE_INFINITY
    )
    const found = yield* findRounds(target, partition, new Set(claimed), first)
    return new Set(claimed.filter((key) => !found.has(key)))
  })

  /** To one that takes nothing any more all would be dead letters. */
  const stillTakes = Effect.gen(function* () {
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
    const { disabled, generation } = config
    if (disabled !== undefined) return yield* stop("disabled")
    if (generation !== target.generation) return yield* stop("replaced by another of its name")
  })

  return {
    /** What there is to do about rounds that may have begun before. */
    plan: Effect.fnUntraced(function* (rounds: ReadonlyArray<Round>) {
      const missing = yield* unfinished(rounds)
      const fresh: Array<Round> = []
      const finishing: Array<Round> = []
      for (const round of rounds) {
        const key = claimKey(round)
        if (!claims.known.has(key)) fresh.push(round)
        else if (missing.has(key)) finishing.push(round)
      }
      return { fresh, finishing, before: rounds.length - fresh.length - finishing.length }
    }),

    /** Begins rounds, or finishes beginning them, at their endpoint's pace. Stops between two of them. */
    beginAll: Effect.fnUntraced(function* (
      rounds: ReadonlyArray<Round>,
      done: (round: Round, begun: Begun) => void
    ) {
      const pace = yield* makePace({
        target,
        partition,
        limits: options.pace ?? usualPace,
        held: options.held,
        // What was claimed has its end, also where its endpoint is gone.
        look: Effect.andThen(
          unchanged,
          Effect.suspend(() => (isNew ? stillTakes : Effect.void))
        )
      })
      let isNew = false
      const turn = yield* Semaphore.make(1)
      const one = Effect.fnUntraced(function* (
        round: Round
      ): Effect.fn.Return<void, BrokerError | PublishError, Broker> {
        const claim = claims.known.get(claimKey(round))
        // Before the claim: what is gone cannot be sent by whoever would finish it.
        const contents = yield* patiently(options.read(round))
        const begun: Effect.Effect<Begun, BrokerError | PublishError, Broker> =
          contents === undefined
            ? Effect.succeed("gone")
            : claim === undefined
              ? begin(round, contents)
              : finish(round, contents, claim)
        yield* Effect.uninterruptible(Effect.map(begun, (what) => done(round, what)))
      })
      yield* Effect.forEach(
        rounds,
        (round) =>
          Effect.andThen(
            turn.withPermit(
              Effect.suspend(() => {
                isNew = !claims.known.has(claimKey(round))
                return patiently(pace.next)
              })
            ),
            one(round)
          ),
        { concurrency: atOnce, discard: true }
      )
    })
  }
})

export type Rounds = Effect.Success<ReturnType<typeof makeRounds>>
