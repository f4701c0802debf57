import { useEffect, useState } from "preact/hooks"
import type { CallOptions } from "../src/client/client.ts"
import { isProblem } from "../src/client/client.ts"
import { drafts } from "./router.ts"
import { endSession } from "./session.ts"

/** What is known of something that was asked for. */
export interface Asked<A> {
  /** The last answer; it stays while a newer one is awaited. */
  readonly value: A | undefined
  /** Why there is no newer answer. */
  readonly problem: string | undefined
  /** Asks again now. */
  readonly again: () => void
}

/** How soon it is asked again after a failure that may pass, ms. */
const retryMs = 3_000

/**
 * The pause before a question is asked again is at least so many times as long as its answer took: with
 * 100,000 endpoints the status of the installation takes the console more than a second.
 */
const leastPauses = 10

/**
 * The longest of these pauses, ms: an answer that has waited for a broker to come back says little of
 * what the next one takes, and a page that shows the outage must not do so for minutes.
 */
const longestPauseMs = 30_000

/** Returns what a failure means to a reader. */
export const problemText = (error: unknown): string => {
  if (isProblem(error, "unauthorized")) return "The session has ended: log in again."
  // Which operation was asked for is for programs.
  if (isProblem(error)) return error.message.replace(`${error.operation}: `, "")
  return "The console does not answer. This page tries again by itself."
}

/** Returns what a failure of what somebody has asked for means to them: nobody repeats that but they. */
export const failureText = (error: unknown): string =>
  isProblem(error)
    ? problemText(error)
    : "The console does not answer: nothing is known to be done. Try again."

const mayPass = (error: unknown): boolean =>
  !isProblem(error) || error.status >= 500 || error.status === 429

/**
 * Asks for something while the page is shown, again at an interval, and again after a failure that may
 * pass. A page that nobody sees asks nothing until somebody does.
 *
 * @param key says what is asked: another key asks anew.
 * @param everyMs between an answer and the next question, or what says so of an answer; undefined: ask
 *   no more.
 */
export const useAsked = <A>(
  key: string,
  ask: (options: CallOptions) => Promise<A>,
  everyMs?: number | ((value: A) => number | undefined)
): Asked<A> => {
  const [state, setState] = useState<{ key: string; value?: A; problem?: string }>({ key })
  const [round, setRound] = useState(0)
  useEffect(() => {
    const leaving = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const run = async (): Promise<void> => {
      let next: number | undefined
      const beganAt = Date.now()
      try {
        const value = await ask({ signal: leaving.signal })
        const usual = typeof everyMs === "function" ? everyMs(value) : everyMs
        const tookMs = Date.now() - beganAt
        next =
          usual === undefined
            ? undefined
            : Math.max(usual, Math.min(tookMs * leastPauses, longestPauseMs))
        if (!leaving.signal.aborted) setState({ key, value })
      } catch (error) {
        if (leaving.signal.aborted) return
        // The page for logging in would take the place of what was typed.
        if (isProblem(error, "unauthorized") && drafts.size === 0) endSession()
        // What is gone is not shown as it was. What may only be away is.
        const isGone = isProblem(error, "not-found")
        setState((before) => ({
          ...(before.key === key && !isGone ? before : { key }),
          problem: problemText(error)
        }))
        next = mayPass(error) ? retryMs : undefined
      }
      if (next !== undefined && !leaving.signal.aborted) timer = setTimeout(whenSeen, next)
    }
    const whenSeen = (): void => {
      const { signal } = leaving
      if (document.hidden)
        document.addEventListener("visibilitychange", whenSeen, { once: true, signal })
      else void run()
    }
    void run()
    return () => {
      leaving.abort()
      clearTimeout(timer)
    }
  }, [key, round])
  const current = state.key === key ? state : undefined
  return {
    value: current?.value,
    problem: current?.problem,
    again: () => setRound(round + 1)
  }
}
