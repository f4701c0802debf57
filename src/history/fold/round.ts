import type { FactKind } from "../../domain/fact.ts"
import { DeadReason } from "../../domain/outcome.ts"

/*
 * The state of one round in one number, so that an audit can hold millions of them in typed arrays:
 *
 *   bits 0-2  how it ended
 *   bits 3-6  why, of a dead letter
 *   bit  7    ended more than once in the same way
 *   bit  8    begun by a plan, a redelivery or a replay
 *   bit  9    ended in two ways
 *   bit  10   an attempt was recorded out of sequence
 *   bit  11   a step was recorded before the round was begun
 *   bit  12   the number of attempts is no longer known
 *   bits 16-  the highest recorded attempt
 *
 * Bits 13 to 15 are free for the holder of the number.
 */

const endMask = 0b111
const reasonShift = 3
const reasonMask = 0b1111 << reasonShift
const repeated = 1 << 7
const begun = 1 << 8
const contradicted = 1 << 9
const outOfTurn = 1 << 10
const tooEarly = 1 << 11
const uncounted = 1 << 12
const attemptShift = 16
const mostAttempts = 0xffff

/**
 * `late`: delivered, recorded by a former owner; takes precedence over any other end. `early`: its
 * dead letter was discarded, and no fact says yet that there was one.
 */
const ends = ["none", "delivered", "dead-lettered", "discarded", "late", "early"] as const
/** How a round ended; `discarded`: its dead letter was removed by an operator. */
type RoundEnd = Exclude<(typeof ends)[number], "early" | "late">

const late = ends.indexOf("late")
const early = ends.indexOf("early")

const reasons: ReadonlyArray<string> = DeadReason.literals
/** Stands for an unknown reason: a newer version may have written it. */
const otherReason = "other"

/** The steps of a round; `begun` is the fact that planned, redelivered or replayed it. */
export type Step = "begun" | Extract<FactKind, RoundKind>
type RoundKind = "attempt-failed" | "delivered" | "delivered-late" | "dead-lettered" | "discarded"

/** The step that a kind of fact is in a round. Kinds that are absent are no step. */
export const stepOfKind: ReadonlyMap<unknown, Step> = new Map<unknown, Step>([
  ["routed", "begun"],
  ["redelivered", "begun"],
  ["replayed", "begun"],
  ["attempt-failed", "attempt-failed"],
  ["delivered", "delivered"],
  ["delivered-late", "delivered-late"],
  ["dead-lettered", "dead-lettered"],
  ["discarded", "discarded"]
])

/** A round without facts. */
export const unrecorded = 0

export const endOf = (round: number): RoundEnd => {
  const end = ends[round & endMask] ?? "none"
  return end === "late" ? "delivered" : end === "early" ? "discarded" : end
}
/** True if a former owner recorded the success; it resolves a dead letter of the round. */
export const isLate = (round: number): boolean => (round & endMask) === late
export const hasEnded = (round: number): boolean => (round & endMask) !== 0
export const attemptsOf = (round: number): number => round >>> attemptShift
export const isBegun = (round: number): boolean => (round & begun) !== 0
export const isRepeated = (round: number): boolean => (round & repeated) !== 0
export const isContradicted = (round: number): boolean => (round & contradicted) !== 0
export const isOutOfTurn = (round: number): boolean => (round & outOfTurn) !== 0
export const isTooEarly = (round: number): boolean => (round & tooEarly) !== 0
/** Why the round was dead-lettered. */
export const reasonOf = (round: number): string =>
  reasons[(round & reasonMask) >> reasonShift] ?? otherReason

/** True if the round has ended and has no problem: only its end is of interest. */
export const isSettled = (round: number): boolean =>
  (round & (begun | contradicted | outOfTurn | tooEarly)) === begun && hasEnded(round)

/** The 8 bits that are kept of a settled round. */
export const essenceOf = (round: number): number => round & 0xff
/** A round from its {@link essenceOf}. */
export const fromEssence = (essence: number): number => essence | begun | uncounted

const withAttempt = (round: number, attempt: number): number =>
  (round & 0xffff) | (Math.min(attempt, mostAttempts) << attemptShift)

/** @param next the number of the next attempt in sequence. */
const attempted = (round: number, attempt: number, next: number): number => {
  if (attempt <= attemptsOf(round) || (round & uncounted) !== 0) return round
  return withAttempt(attempt > next ? round | outOfTurn : round, attempt)
}

const ended = (round: number, end: RoundEnd): number => round | ends.indexOf(end)

/**
 * A former owner's success never contradicts the end that the owner decided: neither knew of the
 * other. The order in which they are recorded does not matter. After a recorded success it is a
 * repeat, also if that success contradicted another end.
 */
const endedLate = (round: number, attempt: number): number => {
  const isAgain = endOf(round) === "delivered" || (hasEnded(round) && isContradicted(round))
  const known = round & ~(endMask | reasonMask | repeated | contradicted)
  const counted =
    attempt > attemptsOf(round) && (round & uncounted) === 0 ? withAttempt(known, attempt) : known
  return counted | late | (isAgain ? repeated : 0)
}

const reasonBits = (reason: string | undefined): number => {
  const index = reasons.indexOf(reason ?? "")
  return (index === -1 ? 0b1111 : index) << reasonShift
}

/** A round whose dead letter was discarded first, now that it is known what it ended with. */
const discardedAfter = (round: number, attempts: number, reason: string | undefined): number => {
  const known = round & ~(endMask | contradicted)
  return ended(attempted(known, attempts, attemptsOf(known)), "discarded") | reasonBits(reason)
}

/**
 * The round after a step. The first end counts: a second one of the same kind is a repeat, one of
 * another kind a contradiction. Steps that a crash repeats (an attempt with a known number, a success
 * after the end) are no problem. A late success turns any end into a delivery.
 *
 * @param attempt the attempt's number; for `dead-lettered` the number of attempts made.
 */
export const afterStep = (round: number, step: Step, attempt = 0, reason?: string): number => {
  const next = attemptsOf(round) + 1
  switch (step) {
    case "begun":
      return (round & ~(begun | tooEarly)) === unrecorded || isBegun(round)
        ? round | begun
        : round | begun | tooEarly
    case "attempt-failed":
      return hasEnded(round) ? round : attempted(round, attempt, next)
    case "delivered":
      if (!hasEnded(round)) return ended(attempted(round, attempt, next), "delivered")
      return endOf(round) === "delivered" ? round | repeated : round | contradicted
    case "delivered-late":
      return endedLate(round, attempt)
    case "dead-lettered":
      if (isLate(round)) return round
      if ((round & endMask) === early) return discardedAfter(round, attempt, reason)
      if (!hasEnded(round))
        return ended(attempted(round, attempt, next - 1), "dead-lettered") | reasonBits(reason)
      return endOf(round) === "delivered" ? round | contradicted : round | repeated
    case "discarded": {
      if (isLate(round)) return round
      // A dead letter can be found and discarded just before its fact is stored.
      if (!hasEnded(round)) return round | contradicted | early
      if ((round & endMask) === early) return round
      const end = endOf(round)
      if (end === "dead-lettered" || end === "discarded")
        return (round & ~endMask) | ends.indexOf("discarded")
      return round | contradicted
    }
  }
}
