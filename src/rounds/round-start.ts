import { Clock, Effect, Schedule } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { FailpointName } from "../broker/failpoint.ts"
import { Failpoint } from "../broker/failpoint.ts"
import { logTransitions } from "../broker/gate.ts"
import type { Layout, TopologyError } from "../broker/installed.ts"
import type { PubAck, PublishError } from "../broker/publication.ts"
import { publishOnce } from "../broker/publish-once.ts"
import type { Addressee, Delivery } from "../domain/delivery.ts"
import {
  deliveryHeaders,
  deliveryId,
  namesOf,
  readRoundKey,
  roundKey,
  untried
} from "../domain/delivery.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { correlationOf } from "../domain/header-names.ts"
import { windowFor } from "../endpoints/live-endpoint.ts"
import type { Claim, Claims } from "../history/claims.ts"
import type { Sighting, Whereabouts } from "../history/locate.ts"
import { locate, roundKeyOf } from "../history/locate.ts"
import { elapsedMs } from "../time/elapsed.ts"
import type { Contents, Round, RoundTarget, StartedRound } from "./round.ts"

/**
 * Returns the `roundKey`s of the rounds that have, or had, a message: it waits in the queue or in
 * the backlog, or the history has a fact of it. A retry that waits as a schedule has a fact, too.
 *
 * @param from a sequence of HISTORY before all facts of these rounds.
 */
export const findRounds = Effect.fnUntraced(function* (
  endpoint: Addressee,
  partition: number,
  wanted: ReadonlySet<string>,
  from: number
) {
  const found = new Set<string>()
  const events = new Set([...wanted].map((key) => readRoundKey(key)?.eventSeq))
  let fromSeq = from
  const note = (sighting: Sighting) => {
    if (sighting.where === "history") fromSeq = sighting.seq + 1
    const key = roundKeyOf(sighting)
    if (wanted.has(key)) found.add(key)
    return found.size === wanted.size
  }
  const look = (...places: ReadonlyArray<Whereabouts>) =>
    locate(
      {
        within: { partition },
        endpoints: [endpoint],
        places,
        historySince: { fromSeq },
        isWanted: (seq) => events.has(seq)
      },
      note
    )
  if (wanted.size === 0) return found
  // Most rounds have ended, so that the history suffices.
  yield* look("history")
  // The history comes last: it has a fact of what moved meanwhile.
  if (found.size < wanted.size) yield* look("queue", "backlog", "history")
  return found
})

/** Pause before a store that the broker did not accept is retried, ms. */
const retryPauseMs = 500

type StartRefusal = TopologyError | BrokerError | PublishError

/** The endpoint whose rounds begin, and how they are stored. */
interface StartOptions {
  readonly target: RoundTarget
  readonly layout: Layout
  readonly partition: number
  readonly claims: Claims
  /** Who asked for it. */
  readonly by: string
  /** Passes while messages are stored where their owner looks; fails once they would not be. */
  readonly safe: Effect.Effect<void, StartRefusal, Broker>
}

/** The options with what all rounds of one start share. */
interface Starting extends StartOptions {
  readonly broker: Broker["Service"]
  readonly clock: Clock.Clock
  readonly reached: (step: FailpointName) => void
  /**
   * After this time the broker may have forgotten a message id, so a store is preceded by a search,
   * ms.
   */
  readonly safeRepublishMs: number
  /** Repeats a store that the broker did not accept, within `safeRepublishMs`. */
  readonly insist: (
    store: Effect.Effect<PubAck, PublishError>
  ) => Effect.Effect<PubAck, StartRefusal, Broker>
}

/** Returns whether a round has, or had, a message. */
const findRound = (
  { broker, partition, target }: Starting,
  round: Round,
  { seq }: Pick<Claim, "seq">
) =>
  Effect.map(
    findRounds(target, partition, new Set([roundKey(round)]), seq),
    (found) => found.size > 0
  ).pipe(Effect.provideService(Broker, broker))

const deliveryOf = (
  { endpoint, generation, revision, tenant }: RoundTarget,
  { eventAt, eventSeq, round }: Round,
  { body: _, ...known }: Contents,
  began: number,
  deadline: number
): Delivery => ({
  tenant,
  endpoint,
  eventSeq,
  eventAt,
  round,
  ...known,
  began,
  deadline,
  generation,
  revision,
  progress: untried
})

/**
 * Stores a round's message, once.
 *
 * @param tried whether an earlier attempt may have stored it.
 */
const storeRound = (
  starting: Starting,
  delivery: Delivery,
  body: Uint8Array,
  claim: Pick<Claim, "seq">,
  tried: boolean
) => {
  const { broker, insist, partition, reached } = starting
  const { endpoint, tenant } = delivery
  const subject = broker.names.subjects.delivery(partition, tenant, endpoint)
  const messageId = `${roundKey(delivery)}.${endpoint}`
  const publish = broker.publish(subject, body, deliveryHeaders(delivery, messageId))
  const find = findRound(starting, delivery, claim)
  return Effect.map(insist(publishOnce(publish, find, { tried })), () => reached("round-stored"))
}

const claimOf = (delivery: Delivery, dead: number | undefined, by: string) => {
  const { began, content, deadline } = delivery
  return {
    ...{ at: began, ...namesOf(delivery), delivery: deliveryId(delivery), deadline, dead, by },
    trace: content.traceparent,
    correlation: correlationOf(content.forwarded)
  } satisfies Partial<Fact>
}

/** Claims a round, then stores its message. */
const beginRound = Effect.fnUntraced(function* (
  starting: Starting,
  round: Round,
  contents: Contents
) {
  const { by, claims, clock, reached, safe, safeRepublishMs, target } = starting
  yield* safe
  const began = clock.currentTimeMillisUnsafe()
  const deadline = began + windowFor(target, contents.type)
  const delivery = deliveryOf(target, round, contents, began, deadline)
  const since = elapsedMs()
  const claimed = yield* claims.claim(claimOf(delivery, round.dead, by), delivery)
  if (claimed === "taken") return "before"
  reached("round-claimed")
  const isSure = claimed === "mine" && elapsedMs() - since < safeRepublishMs
  const claim = claims.known.get(roundKey(delivery)) ?? { seq: 0 }
  yield* storeRound(starting, delivery, contents.body, claim, !isSure)
  return "begun"
})

/** Stores the message of a claimed round, with the deadline of the claim. */
const finishRound = (starting: Starting, round: Round, contents: Contents, claim: Claim) => {
  const delivery = deliveryOf(starting.target, round, contents, claim.at, claim.deadline)
  return Effect.as(storeRound(starting, delivery, contents.body, claim, true), "finished" as const)
}

/** Ends a claimed round whose contents are gone. */
const endRound = Effect.fnUntraced(function* (starting: Starting, round: Round, claim: Claim) {
  const { broker, by, claims, clock, insist, layout, target } = starting
  const { endpoint, tenant } = target
  // The claimant may have read the contents before they were gone, and may still store them.
  const age = clock.currentTimeMillisUnsafe() - claim.at
  const wait = Math.min(layout.moveDedupe, layout.moveDedupe - age)
  yield* Effect.interruptible(Effect.sleep(Math.max(0, wait)))
  if (yield* findRound(starting, round, claim)) return "before"
  const claimed = yield* claims.read(claim)
  if (claimed === undefined) return "gone"
  const { dead: _, ...known } = claimed
  const kind = "dead-lettered"
  const at = clock.currentTimeMillisUnsafe()
  const fact: Fact = { ...known, kind, at, attempt: 0, reason: "gone", by, user: claims.user }
  const append = broker.publish(
    broker.names.subjects.fact(tenant, endpoint, factResult(kind), kind),
    JSON.stringify(fact),
    [["Nats-Msg-Id", `${roundKey(round)}.${endpoint}.gone`]]
  )
  yield* insist(publishOnce(append, findRound(starting, round, claim)))
  return "gone"
})

/**
 * Returns how one round begins, or ends if there is nothing left to send. Afterwards, every claimed
 * round has its message or its end.
 */
export const makeStart = Effect.fnUntraced(function* (options: StartOptions) {
  const say = logTransitions(
    "the broker takes no deliveries: waiting until it does",
    "the broker takes deliveries again"
  )
  const safeRepublishMs = options.layout.moveDedupe / 2
  const starting: Starting = {
    ...options,
    broker: yield* Broker,
    clock: yield* Clock.Clock,
    reached: yield* Failpoint,
    safeRepublishMs,
    insist: (store) =>
      Effect.suspend(() => {
        const until = elapsedMs() + safeRepublishMs
        return Effect.retry(Effect.andThen(options.safe, say(store)), {
          schedule: Schedule.spaced(retryPauseMs),
          while: ({ _tag }) => _tag !== "TopologyError" && elapsedMs() < until
        })
      })
  }
  const { known } = options.claims

  /** @param contents undefined if they are gone. */
  return (
    round: Round,
    contents: Contents | undefined
  ): Effect.Effect<StartedRound, StartRefusal, Broker> => {
    const claim = known.get(roundKey(round))
    if (contents !== undefined)
      return claim === undefined
        ? beginRound(starting, round, contents)
        : finishRound(starting, round, contents, claim)
    return claim === undefined ? Effect.succeed("gone") : endRound(starting, round, claim)
  }
})
