import { Clock, Effect, Schedule } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import { Broker } from "../../broker/connection.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import { logTransitions } from "../../broker/gate.ts"
import type { Layout, TopologyError } from "../../broker/installed.ts"
import { publishOnce } from "../../broker/publish-once.ts"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { deliveryHeaders, deliveryId, roundKey, untried } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { factResult } from "../../domain/fact.ts"
import type { Claim, Claims } from "../../history/claims.ts"
import { elapsedMs } from "../../time/elapsed.ts"
import type { Contents, Round, RoundTarget, StartedRound } from "./round.ts"
import { findRounds } from "./round-search.ts"

/** Pause before a store that the broker did not accept is retried, ms. */
const retryPauseMs = 500

type Refusal = TopologyError | BrokerError | PublishError

export interface StartOptions {
  readonly target: RoundTarget
  readonly layout: Layout
  readonly partition: number
  readonly claims: Claims
  /** Who asked for it. */
  readonly by: string
  /** Passes while what is stored lies where its owner looks; fails when it would not. */
  readonly safe: Effect.Effect<void, Refusal, Broker>
}

/**
 * How one round begins, or ends where there is nothing left to send: whatever was claimed has its
 * message or its end after this.
 */
export const makeStart = Effect.fnUntraced(function* (options: StartOptions) {
  const { by, claims, layout, partition, safe, target } = options
  const { endpoint, tenant } = target
  const broker = yield* Broker
  const { names, publisher } = broker
  const clock = yield* Clock.Clock
  const reached = yield* Failpoint
  const say = logTransitions(
    "the broker takes no deliveries: waiting until it does",
    "the broker takes deliveries again"
  )
  /** After this time the broker may have forgotten a message id, so search before storing again. */
  const safeRepublishMs = layout.moveDedupe / 2

  const insist = (store: Effect.Effect<PubAck, PublishError>) =>
    Effect.suspend(() => {
      const until = elapsedMs() + safeRepublishMs
      return Effect.retry(Effect.andThen(safe, say(store)), {
        schedule: Schedule.spaced(retryPauseMs),
        while: ({ _tag }) => _tag !== "TopologyError" && elapsedMs() < until
      })
    })
  /** Whether a round has a message, or had one. */
  const find = (round: Round, { seq }: Pick<Claim, "seq">) =>
    Effect.map(
      findRounds(target, partition, new Set([roundKey(round)]), seq),
      (found) => found.size > 0
    ).pipe(Effect.provideService(Broker, broker))

  const deliveryOf = (
    { eventAt, eventSeq, round }: Round,
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
      eventAt,
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
  const store = (
    delivery: Delivery,
    body: Uint8Array,
    claim: Pick<Claim, "seq">,
    tried: boolean
  ) => {
    const subject = names.subjects.delivery(partition, tenant, endpoint)
    const messageId = `${roundKey(delivery)}.${endpoint}`
    const publish = publisher.publish(subject, body, deliveryHeaders(delivery, messageId))
    return Effect.map(insist(publishOnce(publish, find(delivery, claim), { tried })), () =>
      reached("round-stored")
    )
  }

  const factOf = (delivery: Delivery, dead: number | undefined) => {
    const { began, content, deadline, event, eventAt, eventSeq, round, type } = delivery
    return {
      at: began,
      tenant,
      endpoint,
      event,
      eventSeq,
      eventAt,
      type,
      delivery: deliveryId(delivery),
      round,
      deadline,
      dead,
      by,
      trace: content.traceparent
    } satisfies Partial<Fact>
  }

  const begin = Effect.fnUntraced(function* (round: Round, contents: Contents) {
    yield* safe
    const began = clock.currentTimeMillisUnsafe()
    const delivery = deliveryOf(round, contents, began, began + target.window)
    const since = elapsedMs()
    const claimed = yield* claims.claim(factOf(delivery, round.dead), delivery)
    if (claimed === "taken") return "before"
    reached("round-claimed")
    const isSure = claimed === "mine" && elapsedMs() - since < safeRepublishMs
    const claim = claims.known.get(roundKey(delivery)) ?? { seq: 0 }
    yield* store(delivery, contents.body, claim, !isSure)
    return "begun"
  })

  /** What was claimed stands: its deadline, too. */
  const finish = (round: Round, contents: Contents, claim: Claim) => {
    const delivery = deliveryOf(round, contents, claim.at, claim.deadline)
    return Effect.as(store(delivery, contents.body, claim, true), "finished" as const)
  }

  /** Ends a claimed round whose contents are gone. */
  const end = Effect.fnUntraced(function* (round: Round, claim: Claim) {
    // The claimant may have read the contents before they were gone, and may still store them.
    const wait = claim.at + layout.moveDedupe - clock.currentTimeMillisUnsafe()
    yield* Effect.interruptible(Effect.sleep(Math.max(0, wait)))
    if (yield* find(round, claim)) return "before"
    const claimed = yield* claims.read(claim)
    if (claimed === undefined) return "gone"
    const { dead: _, ...known } = claimed
    const kind = "dead-lettered"
    const at = clock.currentTimeMillisUnsafe()
    const fact: Fact = { ...known, kind, at, attempt: 0, reason: "gone", by, user: claims.user }
    const append = publisher.publish(
      names.subjects.fact(tenant, endpoint, factResult(kind), kind),
      JSON.stringify(fact),
      [["Nats-Msg-Id", `${roundKey(round)}.${endpoint}.gone`]]
    )
    yield* insist(publishOnce(append, find(round, claim)))
    return "gone"
  })

  /** @param contents undefined where they are gone. */
  return (
    round: Round,
    contents: Contents | undefined
  ): Effect.Effect<StartedRound, Refusal, Broker> => {
    const claim = claims.known.get(roundKey(round))
    if (contents !== undefined)
      return claim === undefined ? begin(round, contents) : finish(round, contents, claim)
    return claim === undefined ? Effect.succeed("gone") : end(round, claim)
  }
})
