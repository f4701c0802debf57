import { Clock, Effect, HashMap, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { orSayMissing, readPartitions } from "../../broker/installed.ts"
import { queryOwner, TaskActivity } from "../../cluster/introspection.ts"
import { readEndpointNow } from "../../delivery/introspection/endpoint-activity.ts"
import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { partitionOf } from "../../domain/names.ts"
import { ErrorClass } from "../../domain/outcome.ts"
import { invalid } from "../../domain/problem.ts"
import { present } from "../../domain/record.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { getEndpoint, listEndpoints } from "../../endpoints/endpoint-store.ts"
import { readSettingsInForce } from "../../endpoints/settings-store.ts"
import type { PendingMessage } from "../../history/audit/pending-scan.ts"
import { hasLeftEntry, isStillDecided, scanFor } from "../../history/audit/pending-scan.ts"
import { amongWaiting, standingInBacklog } from "../../history/backlog-count.ts"
import { readDeliveryFacts } from "../../history/delivery-facts.ts"
import { type DeliveryLife, type DeliveryRound, viewOf } from "../../history/fold/delivery.ts"
import { attemptsOf, endOf, hasEnded } from "../../history/fold/round.ts"
import { Lag, type LoggedDeliveries } from "../../projection/delivery-log.ts"
import { livesOf } from "../../projection/logged-round.ts"
import { healthOf } from "../endpoints/endpoint-queries.ts"
import { findUnrouted, firstUnrouted } from "../events/find-event.ts"
import { askLog, searchBeyondLog } from "../history/history-readings.ts"
import { DeliveryNotFound } from "../refusals.ts"
import type { FindAnswer } from "./attempt-answers.ts"
import { AnswerView, answersIn, readAttemptFacts } from "./attempt-answers.ts"
import { Blocker, blockersOf } from "./delivery-blockers.ts"

const AttemptView = Schema.Struct({
  number: Schema.Int.annotateKey({ description: "Its number in its round, from 1." }),
  at: Timestamp.annotateKey({ description: "When." }),
  isSuccess: Schema.Boolean.annotateKey({ description: "Whether the delivery succeeded by it." }),
  isProbe: Schema.optionalKey(Schema.Literal(true)).annotateKey({
    description: "Sent while the circuit was half-open: it used up none of the policy's attempts."
  }),
  status: Schema.optionalKey(Schema.Int).annotateKey({ description: "The status of the answer." }),
  error: Schema.optional(
    Schema.Struct({
      class: ErrorClass.annotateKey({ description: "The class of the error." }),
      message: Schema.String.annotateKey({ description: "What the error says." })
    })
  ).annotateKey({ description: "Why there was no complete answer." }),
  durationMs: Schema.optionalKey(Schema.Number).annotateKey({
    description: "How long the request took, ms."
  }),
  nextAttemptAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When the next attempt is due."
  }),
  worker: Schema.optionalKey(Schema.String).annotateKey({ description: "The id of the worker." }),
  ...AnswerView.fields
})

/** One round of a delivery. Times in ms since the epoch. */
export const RoundView = Schema.Struct({
  round: Schema.String.annotateKey({
    description: "Which round of the delivery: `0` is the first."
  }),
  /** What began it; null if that is not in the history any more. */
  begun: Schema.NullOr(
    Schema.Struct({
      by: Schema.Literals(["routed", "redelivered", "replayed"]).annotateKey({
        description: "What it was."
      }),
      at: Timestamp.annotateKey({ description: "When." }),
      deadline: Schema.optionalKey(Timestamp).annotateKey({
        description: "When the delivery is given up."
      })
    })
  ).annotateKey({ description: "What began it; null if that is no longer in the history." }),
  attempts: Schema.Array(AttemptView).annotateKey({
    description: "The attempts that are known, in order."
  }),
  lastAttempt: Schema.Int.annotateKey({
    description:
      "The highest number of an attempt that is known; older ones may no longer be in the history."
  }),
  state: Schema.Literals(["open", "delivered", "dead-lettered", "discarded"]).annotateKey({
    description: "Whether the round is open, or how it ended."
  }),
  end: Schema.optionalKey(
    Schema.Struct({
      at: Timestamp.annotateKey({ description: "When." }),
      reason: Schema.optionalKey(Schema.String).annotateKey({
        description: "Why it was given up."
      }),
      dead: Schema.optionalKey(Schema.Int).annotateKey({
        description: "The dead letter that it left, or that the late success resolves."
      }),
      probes: Schema.optionalKey(Schema.Int).annotateKey({
        description: "How many of its attempts were probes, where it ended without success."
      }),
      late: Schema.optionalKey(Schema.Literal(true)).annotateKey({
        description: "A former owner recorded the success."
      })
    })
  ).annotateKey({ description: "How it ended." }),
  discardedAt: Schema.optionalKey(Timestamp).annotateKey({
    description: "When its dead letter was discarded."
  }),
  /** Until when it waits for its next attempt, and how. */
  waits: Schema.optionalKey(
    Schema.Struct({
      until: Timestamp.annotateKey({ description: "Until when." }),
      by: Schema.optionalKey(Schema.Literals(["nak", "schedule"])).annotateKey({
        description: "What it was."
      })
    })
  ).annotateKey({ description: "Until when it waits for its next attempt, and how." }),
  repeats: Schema.Int.annotateKey({ description: "Facts that repeat others." }),
  /** The message of an open round; null if none was found. */
  waitsIn: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        stream: Schema.String.annotateKey({ description: "The stream that has it." }),
        seq: Schema.Int.annotateKey({ description: "Its sequence there." }),
        deadline: Schema.NullOr(Timestamp).annotateKey({
          description: "Null if this version cannot read it."
        }),
        position: Schema.optionalKey(Schema.Int).annotateKey({
          description:
            "Its position among those that wait in its endpoint's backlog, 1 for the first."
        }),
        of: Schema.optionalKey(Schema.Int).annotateKey({ description: "How many wait there." })
      })
    )
  ).annotateKey({ description: "The message of an open round; null if none was found." }),
  inMemory: Schema.optionalKey(
    Schema.Struct({
      worker: Schema.String.annotateKey({ description: "The id of the worker." }),
      ...TaskActivity.fields
    })
  ).annotateKey({
    description:
      "What the owner of its partition is doing with an open round that it has in memory."
  }),
  holds: Schema.optionalKey(Schema.Array(Blocker)).annotateKey({
    description: "What blocks an open round, the most important first."
  })
})
export type RoundView = typeof RoundView.Type

/** The life of one delivery. */
export const ExplainedDelivery = Schema.Struct({
  delivery: Schema.String.annotateKey({ description: "`<event id>.<endpoint id>`" }),
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  event: Schema.optionalKey(Schema.String).annotateKey({ description: "The id of the event." }),
  eventSeq: Schema.Int.annotateKey({
    description: "The sequence of the event in the event stream."
  }),
  type: Schema.optionalKey(Schema.String).annotateKey({ description: "The type of the event." }),
  trace: Schema.optionalKey(Schema.String).annotateKey({
    description: "The event's traceparent, once there was an attempt."
  }),
  rounds: Schema.Array(RoundView).annotateKey({
    description: "The rounds of the delivery, the first one first."
  }),
  lag: Schema.optionalKey(Lag).annotateKey({
    description: "How far the delivery log was behind the history, if the rounds are from there."
  })
})
export type ExplainedDelivery = typeof ExplainedDelivery.Type

interface DeliveryId {
  readonly event: string
  readonly endpoint: string
}

/** Splits a delivery's id. Returns undefined for a text that is none. */
export const readDeliveryId = (text: string): DeliveryId | undefined => {
  const dot = text.lastIndexOf(".")
  return dot <= 0 || dot === text.length - 1
    ? undefined
    : { event: text.slice(0, dot), endpoint: text.slice(dot + 1) }
}

/** Returns the tenants that have, or had according to the history, an endpoint of this name. */
const tenantsWith = Effect.fnUntraced(function* (endpoint: string) {
  const { names, streamInfo } = yield* Broker
  const configured = (yield* listEndpoints()).filter((stored) => stored.endpoint.id === endpoint)
  const { state } = yield* streamInfo("look for an endpoint", names.history, {
    subjects_filter: names.subjects.fact("*", endpoint, "ok", "*").replace(".ok.*", ".>")
  })
  const recorded = Object.keys(state.subjects ?? {}).map(
    (subject) => subject.split(".").at(-4) ?? ""
  )
  return [...new Set([...configured.map((stored) => stored.endpoint.tenant), ...recorded])]
})

/** Reads the rounds of an event for an endpoint from the history, with all facts about them. */
const readLives = Effect.fnUntraced(function* (
  tenant: string,
  { endpoint, event }: DeliveryId,
  after: number | undefined
) {
  const facts = (yield* readDeliveryFacts(tenant, endpoint, event, after)).map(({ fact }) => fact)
  const skips = facts.flatMap(({ plan }) => plan?.skipped ?? [])
  return {
    lives: [...HashMap.values(viewOf(facts).deliveries)]
      .filter((life) => life.endpoint === endpoint)
      .map((life) => ({ life, facts: facts.filter(isAbout(life)) })),
    /** Why a plan left the endpoint out, if one did. */
    skipped: skips.find(({ id }) => id === endpoint)?.reason
  }
})

/** Whether a fact names a delivery. Its plan, which may name many, does not. */
const isAbout =
  (life: DeliveryLife) =>
  ({ endpoint, eventAt, eventSeq, tenant }: Fact): boolean =>
    tenant === life.tenant &&
    endpoint === life.endpoint &&
    eventSeq === life.eventSeq &&
    eventAt === life.eventAt

/**
 * Returns the rounds of a delivery, according to the facts, and the facts; undefined if none is about
 * it. Fails with DeliveryNotFound if the endpoint was left out, or if nothing is recorded of the event
 * yet.
 *
 * @param after excludes facts up to this sequence of the history.
 */
const findRecorded = Effect.fnUntraced(function* (
  delivery: string,
  id: DeliveryId,
  tenant: string | undefined,
  after: number | undefined
) {
  // Before the facts are read: the event may be routed meanwhile.
  const from = yield* firstUnrouted
  const tenants = tenant === undefined ? yield* tenantsWith(id.endpoint) : [tenant]
  const read = yield* Effect.forEach(tenants, (one) => readLives(one, id, after))
  const lives = read.flatMap((one) => one.lives)
  const reason = read.find(({ skipped }) => skipped !== undefined)?.skipped
  if (lives.length === 0 && reason !== undefined)
    return yield* new DeliveryNotFound({ delivery, reason })
  const owners = [...new Set(lives.map(({ life }) => life.tenant))]
  if (owners.length > 1)
    return yield* invalid(
      "",
      `there is more than one delivery ${delivery}: say whose with \`tenant\` (${owners.join(", ")})`
    )
  const life = lives.at(-1)
  if (life === undefined && from !== undefined)
    for (const one of tenants)
      if ((yield* findUnrouted(one, id.event, from)) !== undefined)
        return yield* new DeliveryNotFound({ delivery, isUnrouted: true })
  return life
})

/** Looks for the message of an open round, and for what blocks it. */
const whereabouts = Effect.fnUntraced(function* (life: DeliveryLife, round: DeliveryRound) {
  const { endpoint: id, eventAt, eventSeq, tenant } = life
  const partitions = yield* readPartitions
  const { consumerInfo, names } = yield* Broker
  // Read before the lookup of the delivery: once the router has acknowledged the event, the lookup
  // finds its deliveries.
  const router = yield* consumerInfo("look at the router", names.events, names.routerConsumer)
  const isInRouter = round.round === firstRound && eventSeq > router.ack_floor.stream_seq
  let waiter: PendingMessage | undefined
  let left: PendingMessage | undefined
  yield* scanFor([{ tenant, endpoint: id, eventSeq, round: round.round }], partitions, (found) => {
    const isIt = found.eventSeq === eventSeq && found.eventAt === eventAt
    if (!isIt || found.round !== round.round || found.endpoint !== id) return
    if (hasLeftEntry(found, attemptsOf(round.state))) left = found
    else waiter = found
  })
  if (waiter === undefined && left !== undefined && (yield* isStillDecided(left))) waiter = left
  const endpoint = yield* getEndpoint(tenant, id).pipe(
    Effect.map((stored) => stored.endpoint),
    Effect.catchTags({
      EndpointNotFound: () => Effect.undefined,
      EndpointUnreadable: () => Effect.undefined
    })
  )
  const health = endpoint === undefined ? undefined : yield* healthOf(endpoint)
  const delivery = { eventSeq, eventAt, round: round.round }
  const [activity, owner] = yield* Effect.all(
    [
      readEndpointNow(tenant, id),
      queryOwner(partitionOf(tenant, id, partitions), {
        ...{ about: "delivery", tenant, endpoint: id, delivery }
      })
    ],
    { concurrency: 2 }
  )
  const task = owner?.task
  const settings = yield* readSettingsInForce(tenant)
  const standing =
    waiter?.stream === names.backlog(activity.partition)
      ? yield* standingInBacklog(waiter.stream, waiter.seq, waiter.reference?.place.entry)
      : undefined
  const now = yield* Clock.currentTimeMillis
  const situation = { round, waiter, isInRouter, endpoint, health, activity, settings, task }
  return {
    waitsIn:
      waiter === undefined
        ? null
        : {
            ...{ stream: waiter.stream, seq: waiter.seq, deadline: waiter.deadline ?? null },
            ...(standing && amongWaiting(standing, activity.waiting.backlog))
          },
    ...(owner?.task === undefined ? {} : { inMemory: { worker: owner.worker, ...owner.task } }),
    holds: blockersOf(situation, now)
  }
}, orSayMissing)

const roundView = (round: DeliveryRound, answerOf: FindAnswer): RoundView => {
  const { attempts, begun, discardedAt, end, repeats, state, waits } = round
  const how = endOf(state)
  return {
    round: round.round,
    begun: begun ?? null,
    attempts: attempts.map((attempt) => ({ ...attempt, ...answerOf(round.round, attempt) })),
    lastAttempt: attemptsOf(state),
    state: how === "none" ? "open" : how,
    ...present({ end, discardedAt, waits }),
    repeats
  }
}

/** Returns a delivery as the log has it; undefined if it has none, or not of one tenant. */
const loggedDelivery = ({ lag, rounds }: LoggedDeliveries) => {
  const lives = livesOf(rounds)
  const life = lives.at(-1)
  if (life === undefined || lives.some((one) => one.tenant !== life.tenant)) return undefined
  const seqs = rounds.flatMap(({ recorded }) => recorded.map(({ seq }) => seq))
  return { life, lag, seqs }
}

/** Returns a delivery, and how to read the facts of its attempts. */
const findKnown = Effect.fnUntraced(function* (delivery: string, tenant: string | undefined) {
  const id = readDeliveryId(delivery)
  if (id === undefined)
    return yield* invalid(
      "delivery",
      "must be <event id>.<endpoint id>, such as acme.invoice-42.billing"
    )
  const found = yield* askLog({ ...id, ...(tenant === undefined ? {} : { tenant }) })
  const logged = found === undefined ? undefined : loggedDelivery(found)
  if (logged !== undefined) {
    const { lag, life, seqs } = logged
    return { life, lag, facts: readAttemptFacts(seqs, isAbout(life)) }
  }
  const reason = found?.rounds.find(({ state }) => state === "skipped")?.reason ?? undefined
  const { facts, life } = yield* searchBeyondLog(
    found?.rounds.every(({ state }) => state === "skipped") ? found : undefined,
    (after) => findRecorded(delivery, id, tenant, after),
    (reach) => new DeliveryNotFound({ delivery, ...present({ reach, reason }) })
  )
  return { life, lag: undefined, facts: Effect.succeed(facts) }
})

/** Returns the rounds of a delivery: from the log, where one runs, else from the history. */
export const findDelivery = (delivery: string, tenant: string | undefined) =>
  Effect.map(findKnown(delivery, tenant), ({ life }) => life)

/**
 * Returns the rounds of one delivery with the answers of its last attempts, and what blocks it if it
 * has not ended. Asks a projection if
 * one runs and is not far behind, else reads the history. Fails with DeliveryNotFound if the history
 * has none.
 *
 * @param delivery `<event id>.<endpoint id>`.
 * @param tenant needed if several tenants have such a delivery.
 */
export const explainDelivery = Effect.fnUntraced(function* (delivery: string, tenant?: string) {
  const known = yield* findKnown(delivery, tenant)
  const { lag, life } = known
  const facts = yield* known.facts
  const answerOf = answersIn(facts)
  const trace = facts.find((fact) => fact.trace !== undefined)?.trace
  const rounds = yield* Effect.forEach(life.rounds, (round) =>
    hasEnded(round.state)
      ? Effect.succeed(roundView(round, answerOf))
      : Effect.map(whereabouts(life, round), (found) => ({
          ...roundView(round, answerOf),
          ...found
        }))
  )
  const { endpoint, event, eventSeq, type } = life
  return {
    delivery: event === undefined ? delivery : `${event}.${endpoint}`,
    tenant: life.tenant,
    endpoint,
    ...(event === undefined ? {} : { event }),
    eventSeq,
    ...(type === undefined ? {} : { type }),
    ...(trace === undefined ? {} : { trace }),
    rounds,
    ...(lag === undefined ? {} : { lag })
  } satisfies ExplainedDelivery
})
