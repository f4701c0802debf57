import { Effect, Schedule } from "effect"
import type { Unready } from "../cluster/self-report.ts"
import { clockState, differs } from "../policy/clock-skew.ts"
import { timers } from "../time/timers.ts"

/** What a worker knows of itself at a moment. */
export interface WorkerState {
  readonly isConnected: boolean
  /** True while the others see its heartbeats. */
  readonly isKnown: boolean
  /** How far this machine's clock is ahead of the broker's, or behind it (negative), ms. */
  readonly clockSkewMs: number
  /** True while the history takes facts. */
  readonly isHistoryOpen: boolean
  /** What does not go on, one sentence each. */
  readonly waits: ReadonlyArray<string>
  /** Streams in which publishes time out and none is stored. */
  readonly unanswered: ReadonlyArray<string>
  /** Streams that it pulls from in vain. */
  readonly failedPulls: ReadonlyArray<string>
  /** True once it delivers in its partitions, or where it is not to, or does not get them. */
  readonly delivers: boolean
  /** True while it may not take partitions yet, since the others missed it. */
  readonly isReturning: boolean
  readonly isStopping: boolean
  /** Partitions whose lease was not renewed in time. */
  readonly overdue: ReadonlyArray<number>
}

/** Why a worker does not deliver yet. */
export const notYet = {
  begun: "the worker has not begun to deliver",
  returned:
    "the worker was cut off from the others, and takes partitions one lease period after its return"
} as const

/** Returns what keeps a worker from its work, one sentence each; none if it is ready. */
export const problemsOf = (state: WorkerState): ReadonlyArray<string> => {
  if (state.isStopping) return ["the worker is stopping"]
  if (!state.isConnected) return ["the broker is not connected"]
  const { clockSkewMs, failedPulls, overdue, unanswered } = state
  return [
    ...(state.isKnown ? [] : ["the worker's heartbeats are not seen in the bucket of workers"]),
    ...(clockState(clockSkewMs) === "wrong"
      ? [`${differs(clockSkewMs)}: nothing is routed or sent until they agree`]
      : []),
    ...(state.isHistoryOpen ? [] : ["the history takes no facts: nothing new is sent"]),
    ...state.waits,
    ...(failedPulls.length === 0
      ? []
      : [
          `the broker gives no messages of ${failedPulls.join(", ")}: a stream or consumer is missing, or this user may not ask for them`
        ]),
    ...(unanswered.length === 0
      ? []
      : [`the broker acknowledges nothing that is to be stored in ${unanswered.join(", ")}`]),
    ...(overdue.length === 0
      ? []
      : [
          `the lease of ${overdue.length === 1 ? "partition" : "partitions"} ${overdue.join(", ")} was not renewed in time`
        ]),
    ...(state.delivers ? [] : [state.isReturning ? notYet.returned : notYet.begun])
  ]
}

/** Pause between two looks, ms. */
const lookEvery = 1_000

/**
 * Looks every second whether a worker is ready, as long as the scope lives.
 *
 * @param problems returns what keeps it from its work, one sentence each; none if it is ready.
 * @returns what keeps it from its work, and for how long already; undefined while it is ready, or
 *   has not been otherwise at a look.
 */
export const watchReadiness = Effect.fnUntraced(function* (problems: () => ReadonlyArray<string>) {
  /** The first look of those without a break at which it was not ready, ms of the monotonic clock. */
  let since: number | undefined
  const look = Effect.sync(() => {
    since = problems().length === 0 ? undefined : (since ?? timers.monotonicMs())
  })
  yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(lookEvery)))
  return (): Unready | undefined => {
    const found = problems()
    if (found.length === 0 || since === undefined) return undefined
    return { problems: found, ms: timers.monotonicMs() - since }
  }
})
