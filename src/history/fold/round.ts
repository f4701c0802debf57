import type { FactKind } from "../../domain/fact.ts"
import { DeadReason } from "../../domain/outcome.ts"

/*
 * The law of one round, on one number, so that an audit can hold millions of them in typed arrays:
 *
 *   bits 0-2  how it ended
 *   bits 3-6  why, of a dead letter
 *   bit  7    ended more than once in the same way
 *   bit  8    begun by a plan, a redelivery or a replay
 *   bit  9    ended in two ways
 *   bit  10   an attempt is told of out of its turn
 *   bit  11   told of before it was begun
 *   bit  12   how many attempts it had is not known any more
 *   bits 16-  the highest attempt that is told of
 *
 * Bits 13 to 15 are left to whoever keeps such numbers.
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

/** `late`: delivered, as a former owner recorded, whatever another end says. */
const ends = ["none", "delivered", "dead-lettered", "discarded", "late"] as const
/** How a round ended; `discarded` is a dead letter that somebody threw away. */
export type End = Exclude<(typeof ends)[number], "late">

const late = ends.indexOf("late")

const reasons: ReadonlyArray<string> = DeadReason.literals
/** Stands for a reason that a newer version may have written. */
export const otherReason = "other"

/** What a round is made of; `begun` stands for the fact that planned, redelivered or replayed it. */
export type Step = "begun" | Extract<FactKind, RoundKind>
type RoundKind = "attempt-failed" | "delivered" | "delivered-late" | "dead-lettered" | "discarded"

/** The step that a fact of a kind is in each round that it is about; of other kinds there is none. */
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

/** A round of which nothing is told. */
export const untold = 0

export const endOf = (round: number): End => {
  const end = ends[round & endMask] ?? "none"
  return end === "late" ? "delivered" : end
}
/** True where a former owner recorded the success, which resolves a dead letter of the round. */
export const isLate = (round: number): boolean => (round & endMask) === late
export const hasEnded = (round: number): boolean => (round & endMask) !== 0
export const attemptsOf = (round: number): number => round >>> attemptShift
export const isBegun = (round: number): boolean => (round & begun) !== 0
export const isRepeated = (round: number): boolean => (round & repeated) !== 0
export const isContradicted = (round: number): boolean => (round & contradicted) !== 0
export const isOutOfTurn = (round: number): boolean => (round & outOfTurn) !== 0
export const isTooEarly = (round: number): boolean => (round & tooEarly) !== 0
/** Why a dead letter became one. */
export const reasonOf = (round: number): string =>
  reasons[(round & reasonMask) >> reasonShift] ?? otherReason

/** True where nothing about it is wrong, and its end is all that is worth knowing. */
export const isSettled = (round: number): boolean =>
  (round & (begun | contradicted | outOfTurn | tooEarly)) === begun && hasEnded(round)

/** What is kept of a settled round, in 8 bits. */
export const essenceOf = (round: number): number => round & 0xff
/** A round from its {@link essenceOf}. */
export const fromEssence = (essence: number): number => essence | begun | uncounted

const withAttempt = (round: number, attempt: number): number =>
  (round & 0xffff) | (Math.min(attempt, mostAttempts) << attemptShift)

/** @param next the number that an attempt in its turn has. */
const attempted = (round: number, attempt: number, next: number): number => {
  if (attempt <= attemptsOf(round) || (round & uncounted) !== 0) return round
  return withAttempt(attempt > next ? round | outOfTurn : round, attempt)
}

const ended = (round: number, end: End): number => round | ends.indexOf(end)

/**
 * A former owner's success stands beside whatever the owner decided meanwhile, since neither could
 * know of the other: nothing contradicts it, in whatever order they are recorded. It repeats a
 * success that is recorded already, also one that was in contradiction to another end.
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

/**
 * A round after a fact about it. The first end counts: another of the same kind is a repeat, one of
 * another kind a contradiction. What a crash repeats (an attempt with a number that was there, a
 * success after the end) is no fault. A late success makes any end a delivery.
 *
 * @param attempt the attempt's number; in `dead-lettered` how many were made.
 */
export const afterStep = (round: number, step: Step, attempt = 0, reason?: string): number => {
  const next = attemptsOf(round) + 1
  switch (step) {
    case "begun":
      return (round & ~(begun | tooEarly)) === untold || isBegun(round)
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
      if (!hasEnded(round))
        return ended(attempted(round, attempt, next - 1), "dead-lettered") | reasonBits(reason)
      return endOf(round) === "delivered" ? round | contradicted : round | repeated
    case "discarded": {
      if (isLate(round)) return round
      const end = endOf(round)
      if (end === "dead-lettered" || end === "discarded")
        return (round & ~endMask) | ends.indexOf("discarded")
      return round | contradicted
    }
  }
}
