import { Effect } from "effect"
import { timers } from "../time/timers.ts"

/** After this time, what a user may not publish to is logged again, ms. */
const logAgainAfterMs = 600_000

/**
 * Returns the beginning of a subject, without what differs from message to message; undefined for a
 * request whose answer says that it is refused, so that whoever made it can tell.
 */
const keptOf = (subject: string): string | undefined => {
  const tokens = subject.split(".")
  const first = (count: number) => tokens.slice(0, count).join(".")
  if (subject.startsWith("$JS.API.CONSUMER.MSG.NEXT.")) return first(6)
  if (subject.startsWith("$JS.API.") || subject.startsWith("$SYS.")) return undefined
  return first(subject.startsWith("$JS.") ? 3 : 2)
}

/** Returns what logs that the broker refuses the user a permission. */
export const logPermissions = Effect.gen(function* () {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const saidAt = new Map<string, number>()
  return {
    /** Logs whether the user may receive on a subject: called when that changes. */
    receive: (subject: string, isPermitted: boolean): void => {
      // Each inbox has a name of its own.
      const shown = subject.replace(/^_INBOX\..*/, "_INBOX.>")
      run(
        isPermitted
          ? Effect.logInfo(`the broker lets this user receive on ${shown} again`)
          : Effect.logWarning(
              `the broker does not let this user receive on ${shown}: give it that permission (see nats.conf); trying again`
            )
      )
    },
    /** Logs that the user may not publish to a subject: called for each message. */
    publish: (subject: string): void => {
      const kept = keptOf(subject)
      if (kept === undefined) return
      const now = timers.monotonicMs()
      if (now - (saidAt.get(kept) ?? Number.NEGATIVE_INFINITY) < logAgainAfterMs) return
      saidAt.set(kept, now)
      const shown = kept === subject ? subject : `${kept}.>`
      run(
        Effect.logWarning(
          `the broker does not let this user publish to ${shown}: give it that permission (see nats.conf); trying again`
        )
      )
    }
  }
})
