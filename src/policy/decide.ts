import type { Progress } from "../domain/delivery.ts"
import type { DeadReason } from "../domain/outcome.ts"
import type { Decision, RetryRecord } from "../domain/retry-record.ts"
import { isFromWrongClock } from "./clock-skew.ts"
import type { NextStep } from "./next-step.ts"
import { isPastDeadline } from "./next-step.ts"

/**
 * Chooses how a retry waits, by the number of retries that already wait as NAKs in the same
 * partition.
 *
 * A NAKed message stays pending on the partition's only consumer, which slows down for all
 * endpoints of the partition as pending messages accumulate. Healthy deliveries take 4 ms (p99)
 * with 50 000 of them, and 81 ms and most of a core with 500 000. A schedule of the broker costs
 * the same regardless of their number, but needs an additional publish and fires less punctually.
 * Retries up to the limit therefore wait as NAKs, and all others as schedules.
 */
export const waitBy = (waiting: number, limit = 20_000): "nak" | "schedule" =>
  waiting < limit ? "nak" : "schedule"

/**
 * A message with this many more deliveries by the broker than recorded attempts may be what crashes
 * its workers.
 */
const unrecordedDeliveries = 3
/** Pause before such a message is attempted again, ms: doubles from the first to the second. */
const pausesMs = [1_000, 300_000] as const
/** Doublings after which the pause is at its maximum in any case. */
const maxDoublings = 20

/**
 * True where a message was delivered so often without a recorded attempt that its next attempt must
 * be marked first.
 *
 * @param deliveryCount how often the broker has delivered it, this time included.
 * @param recorded attempts of this message that are recorded.
 */
export const isSuspect = (deliveryCount: number, recorded: number): boolean =>
  deliveryCount - recorded >= unrecordedDeliveries

/**
 * Returns the pause after a defect, ms.
 *
 * @param defects number of earlier ones met with the same message.
 */
export const pauseAfterDefectMs = (defects: number): number =>
  Math.min(pausesMs[0] * 2 ** Math.min(defects, maxDoublings), pausesMs[1])

/** Returns the pause before a message with this many unsurvived attempts is tried again, ms. */
export const pauseBeforeTrialMs = (trials: number): number => pauseAfterDefectMs(trials - 1)

/** Longest delay that is a mere NAK, ms: a longer one is a stored decision. */
export const maxUnstoredDelayMs = 1_000
/**
 * Redelivery delay where the delivery's turn came before this worker knew that its endpoint is live,
 * ms.
 */
const unknownEndpointPauseMs = 250
/** A delivery that is early by no more than this is attempted at once, ms. */
export const timerToleranceMs = 1

/** What is wanted of a delivery whose turn it is. */
export type Goal =
  /** Its turn in its lane has come. */
  | { readonly _tag: "Attempt" }
  /** It cannot wait in memory: it moves to its endpoint's backlog. */
  | { readonly _tag: "Relocate" }
  /** Somebody wants it tried now: it moves there, too, and does not wait for its next attempt. */
  | { readonly _tag: "Hurry" }
  /** It may not wait anywhere. */
  | { readonly _tag: "End"; readonly reason: DeadReason }

/** A decision that was stored earlier, by this owner or a former one. */
export interface StoredDecision {
  readonly decision: Decision
  /** When it was made, ms since the epoch. */
  readonly decidedAt: number
  /** The progress after the attempt that led to the decision. */
  readonly progress: Progress
  /** True where the history holds that attempt's fact. */
  readonly isOutcomeRecorded: boolean
}

/** All that is known of a delivery from the queue or the backlog. Times in ms since the epoch. */
export interface KnownDelivery {
  readonly goal: Goal
  readonly now: number
  readonly deadline: number
  /** The progress that its message carries. */
  readonly progress: Progress
  /**
   * `released` where its record was erased: the delivery has ended or was moved, and the broker
   * lost the acknowledgement.
   */
  readonly stored: StoredDecision | "released" | undefined
  /** True while the broker stores facts and retry records. */
  readonly areStoresOpen: boolean
  /** What its endpoint is. Undefined until it was asked for: that may need the broker. */
  readonly endpoint: "live" | "disabled" | "removed" | undefined
  /** True where this worker knows the live endpoint with its limits. */
  readonly isEndpointKnown: boolean
  /**
   * True where its request is counted against the cap of its endpoint's host, if that has one. False
   * where its turn came while the endpoint was disabled, as it was to end without a request.
   */
  readonly isCounted: boolean
  /** True while this worker owns the partition. */
  readonly mayAttempt: boolean
  /** False while this worker's clock may be wrong, so that nothing can be decided by it. */
  readonly isClockTrusted: boolean
  /** How often the broker has delivered the message. */
  readonly deliveryCount: number
  /** True where this worker gave the message back itself, so that its count proves nothing. */
  readonly isCleared: boolean
  /** True where this worker has paused the message because its attempts were not survived. */
  readonly wasPaused: boolean
}

/** What to do with a delivery now. */
export type NextMove =
  /** Release the message again: nothing is left to do. */
  | { readonly _tag: "Release" }
  /** Apply the stored decision. Some of its steps may have been done. */
  | { readonly _tag: "Resume"; readonly stored: StoredDecision }
  /** See that the history holds the attempt that led to the stored decision, then decide again. */
  | { readonly _tag: "RecordOutcome"; readonly stored: StoredDecision }
  /** Wait until the stores are open, then decide again. */
  | { readonly _tag: "AwaitStores" }
  /** Find out what the endpoint is, then decide again. */
  | { readonly _tag: "AskEndpoint" }
  /**
   * NAK the message; nothing is stored. `pause` because its attempts were not survived; `ours` for
   * a reason of this worker's own, which is no sign of poison.
   */
  | { readonly _tag: "Redeliver"; readonly delayMs: number; readonly why: "pause" | "ours" }
  /** Let it wait for its next attempt, whose fact was stored before it was queued. */
  | { readonly _tag: "Postpone"; readonly progress: Progress; readonly at: number }
  /** Dead-letter it without an attempt. */
  | { readonly _tag: "End"; readonly progress: Progress; readonly reason: DeadReason }
  | { readonly _tag: "Relocate"; readonly progress: Progress }
  /** Attempt it. `trial` is the number of this marked attempt; undefined where no mark is needed. */
  | { readonly _tag: "Attempt"; readonly progress: Progress; readonly trial: number | undefined }

/**
 * True where the next step of a stored decision is an attempt whose time has come. The time that a
 * wrong clock has set is not waited for.
 */
const isDue = (stored: StoredDecision, { goal, now }: KnownDelivery): boolean => {
  const { decidedAt, decision, isOutcomeRecorded } = stored
  if (decision._tag === "Trying") return true
  if (!isOutcomeRecorded || decision._tag !== "Nak") return false
  if (goal._tag === "Hurry") return true
  return decision.at - now <= timerToleranceMs || isFromWrongClock(decidedAt, now)
}

/**
 * Returns the delay of a NAK that waits until `at`, ms: no longer than what was decided, also where
 * the clock was set back since. All times in ms since the epoch.
 */
export const nakDelayMs = (at: number, decidedAt: number, now: number): number =>
  Math.min(at - now, at - decidedAt)

const redeliver = (delayMs: number, why: "pause" | "ours"): NextMove => ({
  _tag: "Redeliver",
  delayMs,
  why
})

/**
 * Decides what to do with a delivery from the queue or the backlog. Pure: an interpreter carries the
 * result out, and calls this again once it knows what was missing.
 */
export const decide = (known: KnownDelivery): NextMove => {
  const { now, stored } = known
  if (stored === "released") return { _tag: "Release" }
  if (!known.isClockTrusted) return redeliver(maxUnstoredDelayMs, "ours")
  if (stored !== undefined && !isDue(stored, known))
    return known.goal._tag === "Hurry" && stored.decision._tag === "Nak"
      ? { _tag: "RecordOutcome", stored }
      : { _tag: "Resume", stored }
  if (!known.areStoresOpen) return { _tag: "AwaitStores" }
  const progress = stored?.progress ?? known.progress
  // A direct attempt was final, before the delivery was queued.
  if (stored === undefined && progress.ends !== undefined)
    return { _tag: "End", progress, reason: progress.ends }
  if (known.endpoint === undefined) return { _tag: "AskEndpoint" }
  const trials = stored?.decision._tag === "Trying" ? stored.decision.times : 0
  const isOver = isPastDeadline(known, now)
  if (trials > 0 && !known.wasPaused && !isOver)
    return redeliver(pauseBeforeTrialMs(trials), "pause")
  if (known.endpoint !== "live")
    return { _tag: "End", progress, reason: `endpoint-${known.endpoint}` }
  if (isOver) return { _tag: "End", progress, reason: trials > 0 ? "defect" : "deadline" }
  if (!known.mayAttempt) return redeliver(maxUnstoredDelayMs, "ours")
  // A broker schedule fires at most a little early. A longer wait means that a direct attempt
  // failed before the delivery was queued.
  const { lastAttemptAt = 0, nextAttemptAt = 0 } = progress
  const isUrgent = known.goal._tag === "Hurry" || isFromWrongClock(lastAttemptAt, now)
  const waitMs = isUrgent ? 0 : nextAttemptAt - now
  if (stored === undefined && waitMs > timerToleranceMs)
    return waitMs > maxUnstoredDelayMs
      ? { _tag: "Postpone", progress, at: nextAttemptAt }
      : redeliver(waitMs, "ours")
  return reach(known, progress, trials)
}

/** Carries the goal out: nothing speaks against an attempt now. */
const reach = (known: KnownDelivery, progress: Progress, trials: number): NextMove => {
  const { goal, now } = known
  if (goal._tag === "Relocate") return { _tag: "Relocate", progress }
  if (goal._tag === "Hurry")
    return { _tag: "Relocate", progress: { ...progress, nextAttemptAt: now } }
  if (goal._tag === "End") return { _tag: "End", progress, reason: goal.reason }
  // The endpoint was created or enabled just now.
  if (!known.isEndpointKnown || !known.isCounted) return redeliver(unknownEndpointPauseMs, "ours")
  const recorded = progress.attempts - known.progress.attempts
  const isMarked = trials > 0 || (!known.isCleared && isSuspect(known.deliveryCount, recorded))
  return { _tag: "Attempt", progress, trial: isMarked ? trials + 1 : undefined }
}

/**
 * Decides how a delivery goes on after a failed attempt.
 *
 * @param waiting deliveries of its stream that wait by NAK.
 * @param maxWaiting number of them above which schedules are used.
 */
export const decisionAfter = (
  step: NextStep,
  waiting: number,
  maxWaiting: number | undefined
): Decision => (step._tag === "Dead" ? step : waitUntil(step.at, waiting, maxWaiting))

/** Decides how a delivery waits until `at`, ms since the epoch. */
export const waitUntil = (
  at: number,
  waiting: number,
  maxWaiting: number | undefined
): Decision => ({ _tag: waitBy(waiting, maxWaiting) === "nak" ? "Nak" : "Schedule", at })

/**
 * True where a decision may have been applied before, at least in part, by a step whose message id
 * the broker has forgotten.
 *
 * @param decidedAt when it was made, `now` the present time, ms since the epoch.
 * @param window how long the broker surely knows a message id, ms.
 */
export const mayBeApplied = (decidedAt: number, now: number, window: number): boolean =>
  Math.abs(now - decidedAt) > window

/**
 * Returns the time before which no step of a decision was applied, ms since the epoch.
 *
 * @param storedAt when the broker stored the message that was decided about: earlier than any
 *   decision about it, and by a better clock than one that was wrong.
 */
export const appliedSince = (decidedAt: number, storedAt: number, now: number): number =>
  isFromWrongClock(decidedAt, now) ? storedAt : decidedAt

/** What to do with a delivery that must end now, whatever was decided before. */
type Ending =
  /** Apply the dead-lettering that was decided. */
  | "apply"
  /** Record the outcome; then release the message if its schedule was stored, else end. */
  | "unless-moved"
  /** Record the outcome, then end. */
  | "record-first"
  /** Nothing was decided: end. */
  | "end"

/** Decides what an end makes of the decision that was stored earlier. */
export const endingOf = (stored: Pick<RetryRecord, "decision"> | undefined): Ending => {
  switch (stored?.decision._tag) {
    case undefined:
      return "end"
    case "Dead":
      return "apply"
    case "Schedule":
      return "unless-moved"
    default:
      return "record-first"
  }
}
