import type { Fact } from "../domain/fact.ts"
import { directChannel } from "../domain/origin.ts"
import { planOf, readRecord, strictly } from "../history/fact-record.ts"
import {
  afterRoundStep,
  type DeliveryRound,
  type DeliveryStep,
  stepsOf
} from "../history/fold/delivery.ts"
import { endOf, hasEnded, isLate, stepOfKind } from "../history/fold/round.ts"

/** Rows that one fact may make: a part of a plan, at most 256 KiB, names fewer endpoints. */
const rowsPerFact = 8_192

/**
 * The position of a row in the log: rows are in the order of these. It contains the sequence of the
 * fact and the row's number among those that the fact makes.
 */
export const positionOf = (seq: number, index: number): number => seq * rowsPerFact + index
/** The first position that no row of this fact or an earlier one has. */
export const positionAfter = (seq: number): number => (seq + 1) * rowsPerFact
export const seqOf = (position: number): number => Math.floor(position / rowsPerFact)

/** Positions of so many facts are exact in a double. */
const factsInPositions = 2 ** 53 / rowsPerFact

/**
 * Returns what the log takes off the sequences of a history whose first fact has this one. The
 * sequences of a history that was removed and made again begin too far above those of the former
 * (`beyondRemoved`) for positions.
 */
export const baseOf = (seq: number): number => {
  const half = factsInPositions / 2
  return Math.floor(seq / half) * half
}

/** A round of a delivery as the projection keeps it. */
export interface TrackedRound {
  /** Where it stands in the log: at the fact that ended it, or that began it while it waits. */
  readonly position: number
  readonly tenant: string
  readonly endpoint: string
  readonly event: string
  readonly eventSeq: number
  readonly eventAt: number
  readonly type: string | null
  /** How the event came (domain/origin.ts); null if that is not known. */
  readonly channel: string | null
  readonly round: DeliveryRound
  /** The sequences in HISTORY of the facts of `round.attempts`. */
  readonly seqs: ReadonlyArray<number>
  /** Why the plan left the endpoint out: nothing is sent. */
  readonly skipped: string | null
  /** The round that sent its dead letter again. */
  readonly redeliveredAs: string | null
}

/** What a fact says of one round. */
export interface RoundChange {
  /** Of the round: see {@link roundKeyOf}. */
  readonly key: string
  readonly endpoint: string
  readonly eventSeq: number
  readonly eventAt: number
  readonly round: string
  /** The round after the change; undefined if there is nothing to keep. */
  readonly apply: (known: TrackedRound | undefined) => TrackedRound | undefined
}

/** Identifies a round among all. */
export const roundKeyOf = (
  of: Pick<RoundChange, "endpoint" | "eventAt" | "eventSeq" | "round">,
  tenant: string
): string => `${of.eventSeq}@${of.eventAt}.${tenant}.${of.endpoint}.${of.round}`

/** Returns the label of the fact's event. */
export const eventLabel = ({ event, eventSeq }: Pick<Fact, "event" | "eventSeq">): string =>
  event ?? `evt_${eventSeq}`

const optional = (value: unknown, type: string): boolean =>
  value === undefined || typeof value === type

/** Parses a fact that says something of deliveries; undefined for any other text. */
export const readDeliveryFact = (text: string): Fact | undefined => {
  const record = readRecord(text)
  if (record === undefined || !stepOfKind.has(record.kind)) return undefined
  const { attempt, dead, event, plan, reason, round, type } = record
  const isPlain =
    optional(attempt, "number") &&
    optional(dead, "number") &&
    optional(event, "string") &&
    optional(reason, "string") &&
    optional(round, "string") &&
    optional(type, "string") &&
    (plan === undefined || planOf(record) !== undefined)
  // To validate each fact in full takes longer than to store it.
  return isPlain && isUsual(record) ? (record as Fact) : strictly(record)
}

const isTime = (value: unknown): boolean =>
  typeof value === "number" && value >= 0 && value <= maxTime
/** The last moment that a Date can hold, ms since the epoch. */
const maxTime = 8.64e15

const isUsual = (record: object): boolean => {
  const { at, durationMs, error, eventAt, nextAttemptAt, status, worker } = record as Record<
    string,
    unknown
  >
  return (
    isTime(at) &&
    (eventAt === undefined || isTime(eventAt)) &&
    optional(status, "number") &&
    optional(durationMs, "number") &&
    optional(nextAttemptAt, "number") &&
    optional(worker, "string") &&
    (error === undefined || (typeof error === "object" && error !== null))
  )
}

/** Returns how the event of a fact with its plan came; undefined for any other fact. */
export const channelIn = ({ plan }: Pick<Fact, "plan">): string | undefined => {
  if (plan === undefined) return undefined
  return typeof plan.channel === "string" ? plan.channel : directChannel
}

const changed = (
  known: TrackedRound | undefined,
  step: DeliveryStep,
  position: number
): TrackedRound | undefined => {
  // The round of a dead letter that was discarded after its facts had expired.
  if (known === undefined && step.step === "discarded") return undefined
  const { fact } = step
  const before = known?.round
  const round = afterRoundStep(before, step)
  const hasNewAttempt = round.attempts.length > (before?.attempts.length ?? 0)
  const seqs = known?.seqs ?? []
  return {
    position:
      known === undefined || isNewEnd(known.round.state, round.state) ? position : known.position,
    tenant: fact.tenant,
    endpoint: step.endpoint,
    event: eventLabel(fact),
    eventSeq: step.of.eventSeq,
    eventAt: step.of.eventAt,
    type: fact.type ?? known?.type ?? null,
    channel: channelIn(fact) ?? known?.channel ?? null,
    round,
    seqs: hasNewAttempt ? [...seqs, seqOf(position)] : seqs,
    skipped: null,
    redeliveredAs: known?.redeliveredAs ?? null
  }
}

/** True if the end that counts is another one than before. */
const isNewEnd = (before: number, after: number): boolean =>
  hasEnded(after) &&
  (!hasEnded(before) || (isLate(after) && !isLate(before) && endOf(before) !== "delivered"))

const skippedRound = (
  known: TrackedRound | undefined,
  fact: Fact,
  of: { readonly endpoint: string; readonly eventSeq: number; readonly eventAt: number },
  reason: string,
  position: number
): TrackedRound =>
  known ?? {
    position,
    tenant: fact.tenant,
    ...of,
    event: eventLabel(fact),
    type: fact.type ?? null,
    channel: channelIn(fact) ?? null,
    round: {
      round: "0",
      state: 0,
      begun: { by: "routed", at: fact.at },
      attempts: [],
      end: { at: fact.at, reason },
      repeats: 0
    },
    seqs: [],
    skipped: reason,
    redeliveredAs: null
  }

/** What a fact says of rounds, in order; the meaning of each step is that of history/fold. */
export const changesOf = (fact: Fact, seq: number): ReadonlyArray<RoundChange> => {
  const steps = stepsOf(fact)
  if (steps.length === 0 && fact.plan === undefined) return []
  let begun = 0
  const changes = steps.map((step): RoundChange => {
    const position = positionOf(seq, step.step === "begun" && fact.plan !== undefined ? ++begun : 0)
    return {
      key: roundKeyOf({ endpoint: step.endpoint, ...step.of }, fact.tenant),
      endpoint: step.endpoint,
      ...step.of,
      // A plan that lost may have been followed for an endpoint that the other one leaves out.
      apply: (known) => changed(known?.skipped == null ? known : undefined, step, position)
    }
  })
  const { eventAt, eventSeq, plan } = fact
  if (plan === undefined || eventSeq === undefined || eventAt === undefined) return changes
  for (const [index, { id, reason }] of plan.skipped.entries()) {
    const of = { endpoint: id, eventSeq, eventAt }
    const position = positionOf(seq, plan.endpoints.length + 1 + index)
    changes.push({
      key: roundKeyOf({ ...of, round: "0" }, fact.tenant),
      ...of,
      round: "0",
      apply: (known) => skippedRound(known, fact, of, reason, position)
    })
  }
  return changes
}

/** True if nothing further is expected of the round. */
export const isOver = ({ round, skipped }: TrackedRound): boolean =>
  skipped !== null || hasEnded(round.state)

/** A dead letter that a fact tells to be sent again, and the round that does so. */
interface SentAgain {
  readonly event: string
  readonly of: Pick<RoundChange, "endpoint" | "eventAt" | "eventSeq" | "round">
  readonly dead: number
}

export const sentAgainIn = (fact: Fact): SentAgain | undefined => {
  const { dead, endpoint, eventAt, eventSeq, kind, round } = fact
  return kind !== "redelivered" ||
    dead === undefined ||
    eventSeq === undefined ||
    eventAt === undefined ||
    round === undefined
    ? undefined
    : { event: eventLabel(fact), of: { endpoint, eventSeq, eventAt, round }, dead }
}
