import type { EventIdentity } from "../../domain/event.ts"
import type { Fact } from "../../domain/fact.ts"
import { isSuccess } from "../../domain/fact.ts"
import { afterStep, endOf, hasEnded, isLate, untold } from "./round.ts"
import type { DeliveryStep } from "./steps.ts"

/** One request of a round. Times in ms. */
export interface Attempt {
  readonly number: number
  readonly at: number
  readonly isSuccess: boolean
  readonly status?: number
  readonly error?: Fact["error"]
  readonly durationMs?: number
  readonly nextAttemptAt?: number
  readonly worker?: string
}

/** One go at a delivery. Times in ms since the epoch. */
export interface Round {
  readonly round: string
  /** The law's view of it: see round.ts. */
  readonly state: number
  /** What began it; undefined where the facts do not tell. */
  readonly begun?: {
    readonly by: "routed" | "redelivered" | "replayed"
    readonly at: number
    readonly deadline?: number
  }
  readonly attempts: ReadonlyArray<Attempt>
  /** Until when it waits for its next attempt, and how. */
  readonly waits?: { readonly until: number; readonly by?: "nak" | "schedule" }
  readonly end?: {
    readonly at: number
    readonly reason?: string
    /** The dead letter that it left, or that the late success resolves. */
    readonly dead?: number
    /** A former owner recorded the success, when the round may have ended otherwise. */
    readonly late?: true
  }
  readonly discardedAt?: number
  /** Facts that told again what was told before. */
  readonly repeats: number
}

/** All that the facts tell of one event for one endpoint. */
export interface DeliveryLife extends EventIdentity {
  readonly tenant: string
  readonly endpoint: string
  readonly event?: string
  readonly type?: string
  /** In the order in which they are first told of. */
  readonly rounds: ReadonlyArray<Round>
}

const freshRound = (round: string): Round => ({ round, state: untold, attempts: [], repeats: 0 })

const attemptIn = (fact: Fact): Attempt => ({
  number: fact.attempt ?? 0,
  at: fact.at,
  isSuccess: isSuccess(fact.kind),
  ...(fact.status === undefined ? {} : { status: fact.status }),
  ...(fact.error === undefined ? {} : { error: fact.error }),
  ...(fact.durationMs === undefined ? {} : { durationMs: fact.durationMs }),
  ...(fact.nextAttemptAt === undefined ? {} : { nextAttemptAt: fact.nextAttemptAt }),
  ...(fact.worker === undefined ? {} : { worker: fact.worker })
})

const begin = (round: Round, { deadline, fact }: DeliveryStep): Round => {
  if (round.begun !== undefined) return { ...round, repeats: round.repeats + 1 }
  const { at, kind } = fact
  const by = kind === "redelivered" || kind === "replayed" ? kind : "routed"
  return { ...round, begun: { by, at, ...(deadline === undefined ? {} : { deadline }) } }
}

/** The attempt that a fact tells of, unless it was told of before. */
const withAttempt = (round: Round, fact: Fact): Round => {
  const attempt = attemptIn(fact)
  return round.attempts.some(({ number }) => number === attempt.number)
    ? { ...round, repeats: round.repeats + 1 }
    : { ...round, attempts: [...round.attempts, attempt] }
}

const close = (round: Round, fact: Fact): Round => {
  if (hasEnded(round.state)) return { ...round, repeats: round.repeats + 1 }
  const told = fact.kind === "delivered" ? withAttempt(round, fact) : round
  const { waits: _, ...rest } = told
  return {
    ...rest,
    end: {
      at: fact.at,
      ...(fact.reason === undefined ? {} : { reason: fact.reason }),
      ...(fact.dead === undefined ? {} : { dead: fact.dead })
    }
  }
}

/** The same where owner and former owner each made the attempt: both are shown. */
const withRequest = (round: Round, fact: Fact): Round => {
  const made = attemptIn(fact)
  const isKnown = round.attempts.some(
    ({ isSuccess, number, worker }) =>
      number === made.number && isSuccess === made.isSuccess && worker === made.worker
  )
  return isKnown ? round : { ...round, attempts: [...round.attempts, made] }
}

/** A former owner's success counts, whatever end the round has: it resolves a dead letter. */
const closeLate = (round: Round, fact: Fact): Round => {
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

/** A dead letter of a round that was delivered late stays what it is, and is resolved. */
const resolved = (round: Round, fact: Fact): Round =>
  round.end === undefined || fact.dead === undefined
    ? round
    : { ...round, end: { ...round.end, dead: fact.dead } }

const fail = (round: Round, fact: Fact): Round => {
  if (isLate(round.state)) return withRequest(round, fact)
  if (hasEnded(round.state)) return { ...round, repeats: round.repeats + 1 }
  const told = withAttempt(round, fact)
  if (told.attempts === round.attempts || fact.nextAttemptAt === undefined) return told
  const { nextAttemptAt: until, wait: by } = fact
  return { ...told, waits: { until, ...(by === undefined ? {} : { by }) } }
}

const roundAfter = (round: Round, taken: DeliveryStep): Round => {
  const { fact, step } = taken
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
      return endOf(round.state) === "dead-lettered" || isLate(round.state)
        ? { ...round, state, discardedAt: fact.at }
        : { ...round, state, repeats: round.repeats + 1 }
  }
}

/** A delivery after a step of its life. */
export const afterDeliveryStep = (
  life: DeliveryLife | undefined,
  taken: DeliveryStep
): DeliveryLife => {
  const { fact, of } = taken
  const known: DeliveryLife = life ?? {
    tenant: fact.tenant,
    endpoint: taken.endpoint,
    eventSeq: of.eventSeq,
    eventAt: of.eventAt,
    rounds: []
  }
  const before = known.rounds.find(({ round }) => round === of.round)
  const after = roundAfter(before ?? freshRound(of.round), taken)
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
