import { HashMap, Option } from "effect"
import { firstRound, type RoundIdentity } from "../../domain/delivery.ts"
import { type EventIdentity, eventName } from "../../domain/event.ts"
import { type Fact, isSuccess, plannedOtherwise } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"
import { afterEndpointFact, type EndpointLife, newEndpoint } from "./endpoint.ts"
import { afterStep, endOf, hasEnded, isLate, type Step, stepOfKind, unrecorded } from "./round.ts"
import { afterCounting, beginningOf, noTotals, type Totals } from "./totals.ts"

/** A step of one round of one delivery, from a fact. */
export interface DeliveryStep {
  readonly step: Step
  readonly endpoint: string
  readonly of: RoundIdentity
  /** The deadline, if the fact has one, ms since the epoch. */
  readonly deadline: number | undefined
  readonly fact: Fact
}

/**
 * The steps that a fact contains, in order. A plan begins a delivery for each of its endpoints, also
 * a plan that is stored with the outcome of its only delivery. A success that is marked `planned-otherwise`
 * begins its delivery too, because the plan that counts does not name the endpoint; a failure with
 * that mark belongs to no delivery.
 */
export const stepsOf = (fact: Fact): ReadonlyArray<DeliveryStep> => {
  const { deadline, endpoint, eventAt, eventSeq, kind, plan, round = firstRound } = fact
  const step = stepOfKind.get(kind)
  if (step === undefined || eventSeq === undefined || eventAt === undefined) return []
  if (kind === "attempt-failed" && fact.reason === plannedOtherwise) return []
  const planned =
    isSuccess(kind) && fact.reason === plannedOtherwise
      ? [{ id: endpoint, deadline }]
      : (plan?.endpoints ?? [])
  const begun = planned.map(
    ({ deadline, id }): DeliveryStep => ({
      step: "begun",
      endpoint: id,
      of: { eventSeq, eventAt, round: firstRound },
      deadline,
      fact
    })
  )
  return kind === "routed"
    ? begun
    : [...begun, { step, endpoint, of: { eventSeq, eventAt, round }, deadline, fact }]
}

/** One attempt of a round. Times in ms. */
export interface RecordedAttempt {
  readonly number: number
  readonly at: number
  readonly isSuccess: boolean
  /** Set for a request that was sent while the circuit was half-open. */
  readonly isProbe?: true
  readonly status?: number
  readonly error?: Fact["error"]
  readonly durationMs?: number
  readonly nextAttemptAt?: number
  readonly worker?: string
}

/** One round of a delivery. Times in ms since the epoch. */
export interface DeliveryRound {
  readonly round: string
  /** The state in bits: see round.ts. */
  readonly state: number
  /** What began it; undefined if that is not recorded. */
  readonly begun?: {
    readonly by: "routed" | "redelivered" | "replayed"
    readonly at: number
    readonly deadline?: number
  }
  readonly attempts: ReadonlyArray<RecordedAttempt>
  /** When the next attempt is due, and what wakes it. */
  readonly waits?: { readonly until: number; readonly by?: "nak" | "schedule" }
  readonly end?: {
    readonly at: number
    readonly reason?: string
    /** Its dead letter, also one that a late success resolved. */
    readonly dead?: number
    /** How many of its attempts were probes, where it ended without success. */
    readonly probes?: number
    /** Set if a former owner recorded the success; the round may have another end too. */
    readonly late?: true
  }
  readonly discardedAt?: number
  /** Facts that repeat earlier ones. */
  readonly repeats: number
}

/** One event for one endpoint, according to the facts. */
export interface DeliveryLife extends EventIdentity {
  readonly tenant: string
  readonly endpoint: string
  readonly event?: string
  readonly type?: string
  /** In the order of their first facts. */
  readonly rounds: ReadonlyArray<DeliveryRound>
}

const freshRound = (round: string): DeliveryRound => ({
  round,
  state: unrecorded,
  attempts: [],
  repeats: 0
})

const attemptIn = (fact: Fact): RecordedAttempt => ({
  number: fact.attempt ?? 0,
  at: fact.at,
  isSuccess: isSuccess(fact.kind),
  ...(fact.probe === true ? { isProbe: true } : {}),
  ...(fact.status === undefined ? {} : { status: fact.status }),
  ...(fact.error === undefined ? {} : { error: fact.error }),
  ...(fact.durationMs === undefined ? {} : { durationMs: fact.durationMs }),
  ...(fact.nextAttemptAt === undefined ? {} : { nextAttemptAt: fact.nextAttemptAt }),
  ...(fact.worker === undefined ? {} : { worker: fact.worker })
})

const begin = (round: DeliveryRound, { deadline, fact }: DeliveryStep): DeliveryRound => {
  if (round.begun !== undefined) return { ...round, repeats: round.repeats + 1 }
  const { at, kind } = fact
  const by = kind === "redelivered" || kind === "replayed" ? kind : "routed"
  return { ...round, begun: { by, at, ...(deadline === undefined ? {} : { deadline }) } }
}

/** Adds the attempt of a fact, unless it was recorded before. */
const withAttempt = (round: DeliveryRound, fact: Fact): DeliveryRound => {
  const attempt = attemptIn(fact)
  return round.attempts.some(({ number }) => number === attempt.number)
    ? { ...round, repeats: round.repeats + 1 }
    : { ...round, attempts: [...round.attempts, attempt] }
}

const close = (round: DeliveryRound, fact: Fact): DeliveryRound => {
  if (round.end !== undefined) return { ...round, repeats: round.repeats + 1 }
  const attempted = fact.kind === "delivered" ? withAttempt(round, fact) : round
  const { waits: _, ...rest } = attempted
  return {
    ...rest,
    end: {
      at: fact.at,
      ...(fact.reason === undefined ? {} : { reason: fact.reason }),
      ...(fact.dead === undefined ? {} : { dead: fact.dead }),
      ...(fact.probes === undefined ? {} : { probes: fact.probes })
    }
  }
}

/** Like {@link withAttempt}, but keeps both attempts if owner and former owner each made one. */
const withRequest = (round: DeliveryRound, fact: Fact): DeliveryRound => {
  const made = attemptIn(fact)
  const isKnown = round.attempts.some(
    ({ isSuccess, number, worker }) =>
      number === made.number && isSuccess === made.isSuccess && worker === made.worker
  )
  return isKnown ? round : { ...round, attempts: [...round.attempts, made] }
}

/** A former owner's success counts whatever end the round has; it resolves a dead letter. */
const closeLate = (round: DeliveryRound, fact: Fact): DeliveryRound => {
  const isAgain = endOf(round.state) === "delivered"
  const { waits: _, ...rest } = withRequest(round, fact)
  return {
    ...rest,
    repeats: round.repeats + (isAgain ? 1 : 0),
    end: {
      at: round.end !== undefined && isAgain ? round.end.at : fact.at,
      ...(round.end?.dead === undefined ? {} : { dead: round.end.dead }),
      late: true
    }
  }
}

/** A dead letter of a round that was delivered late is recorded as resolved. */
const resolved = (round: DeliveryRound, fact: Fact): DeliveryRound =>
  round.end === undefined || fact.dead === undefined
    ? round
    : { ...round, end: { ...round.end, dead: fact.dead } }

const fail = (round: DeliveryRound, fact: Fact): DeliveryRound => {
  if (isLate(round.state)) return withRequest(round, fact)
  if (hasEnded(round.state)) return { ...round, repeats: round.repeats + 1 }
  const attempted = withAttempt(round, fact)
  if (attempted.attempts === round.attempts || fact.nextAttemptAt === undefined) return attempted
  const { nextAttemptAt: until, wait: by } = fact
  return { ...attempted, waits: { until, ...(by === undefined ? {} : { by }) } }
}

/** The round after a step of its own; without one, a round that begins with the step. */
export const afterRoundStep = (
  known: DeliveryRound | undefined,
  taken: DeliveryStep
): DeliveryRound => {
  const { fact, of, step } = taken
  const round = known ?? freshRound(of.round)
  const state = afterStep(round.state, step, fact.attempt, fact.reason)
  switch (step) {
    case "begun":
      return { ...begin(round, taken), state }
    case "attempt-failed":
      return { ...fail(round, fact), state }
    case "delivered":
      return { ...close(round, fact), state }
    case "delivered-late":
      return { ...closeLate(round, fact), state }
    case "dead-lettered":
      return { ...(isLate(round.state) ? resolved(round, fact) : close(round, fact)), state }
    case "discarded":
      return !hasEnded(round.state) || endOf(round.state) === "dead-lettered" || isLate(round.state)
        ? { ...round, state, discardedAt: fact.at }
        : { ...round, state, repeats: round.repeats + 1 }
  }
}

/** The delivery after a step. */
const afterDeliveryStep = (life: DeliveryLife | undefined, taken: DeliveryStep): DeliveryLife => {
  const { fact, of } = taken
  const known: DeliveryLife = life ?? {
    tenant: fact.tenant,
    endpoint: taken.endpoint,
    eventSeq: of.eventSeq,
    eventAt: of.eventAt,
    rounds: []
  }
  const before = known.rounds.find(({ round }) => round === of.round)
  const after = afterRoundStep(before, taken)
  return {
    ...known,
    ...(fact.event === undefined ? {} : { event: fact.event }),
    ...(fact.type === undefined ? {} : { type: fact.type }),
    rounds:
      before === undefined
        ? [...known.rounds, after]
        : known.rounds.map((round) => (round === before ? after : round))
  }
}

/** The state that results from all facts, or from a view and the facts after it. */
export interface View {
  /** By {@link deliveryKey}. */
  readonly deliveries: HashMap.HashMap<string, DeliveryLife>
  /** By `<tenant>.<endpoint>`. */
  readonly endpoints: HashMap.HashMap<string, EndpointLife>
  /** By `<tenant>.<beginning of the hour>`. */
  readonly totals: HashMap.HashMap<string, Totals>
}

export const emptyView: View = {
  deliveries: HashMap.empty(),
  endpoints: HashMap.empty(),
  totals: HashMap.empty()
}

/** A delivery's identity. */
export const deliveryKey = (event: EventIdentity, tenant: string, endpoint: string): string =>
  `${eventName(event)}.${tenant}.${endpoint}`

/** The view after one more fact. */
const afterFact = (view: View, fact: Fact): View => {
  let { deliveries, endpoints, totals } = view
  for (const taken of stepsOf(fact)) {
    const key = deliveryKey(taken.of, fact.tenant, taken.endpoint)
    const life = Option.getOrUndefined(HashMap.get(deliveries, key))
    deliveries = HashMap.set(deliveries, key, afterDeliveryStep(life, taken))
  }
  if (fact.endpoint !== nobody) {
    const key = `${fact.tenant}.${fact.endpoint}`
    const life = Option.getOrElse(HashMap.get(endpoints, key), () => newEndpoint)
    endpoints = HashMap.set(endpoints, key, afterEndpointFact(life, fact))
  }
  const key = `${fact.tenant}.${beginningOf(fact.at, "hour")}`
  const sum = Option.getOrElse(HashMap.get(totals, key), () => noTotals)
  totals = HashMap.set(totals, key, afterCounting(sum, fact))
  return { deliveries, endpoints, totals }
}

/** The view after facts, in order. */
export const viewOf = (facts: Iterable<Fact>, from: View = emptyView): View => {
  let view = from
  for (const fact of facts) view = afterFact(view, fact)
  return view
}
