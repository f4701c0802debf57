import { Effect, Schema } from "effect"
import type { Directory } from "../endpoints/directory.ts"
import { timers } from "../time/timers.ts"

/** Interval at which a wait checks whether the worker stops, ms. */
const pollMs = 250
/** How long routing waits before it logs a warning, ms. */
const logAfterMs = 2_000

/** An event was not planned because the endpoints known here may be out of date. */
export class EndpointsNotCurrent extends Schema.TaggedError<EndpointsNotCurrent>()(
  "EndpointsNotCurrent",
  {}
) {
  override get message() {
    return "the endpoints could not be read again in time"
  }
}

/** Holds back plans while this worker may not know all endpoints. */
interface DirectoryGate {
  /** True where a plan may be made now. */
  readonly isOpen: () => boolean
  /**
   * Returns true where a plan may be made, else waits up to {@link pollMs} and returns false. Meant
   * for a single caller that polls: it logs once that routing waits, and once that it continues.
   */
  readonly look: Effect.Effect<boolean>
  /** Waits until a plan may be made. Fails when the limit is over or the worker stops. */
  readonly pass: Effect.Effect<void, EndpointsNotCurrent>
}

/**
 * Allows plans only while the directory is current. An endpoint that the directory has not read
 * would be missing from the plan, and nothing would show it.
 *
 * @param limit how long an event that was pulled may wait, ms.
 */
export const makeDirectoryGate = (
  { current, isCurrent }: Pick<Directory["Service"], "current" | "isCurrent">,
  { limit, stopping }: { readonly limit: number; readonly stopping: () => boolean }
): DirectoryGate => {
  let since: number | undefined
  let said = false
  const nextLook = Effect.raceFirst(current, Effect.sleep(pollMs))

  const look = Effect.suspend(() => {
    if (isCurrent()) {
      since = undefined
      if (!said) return Effect.succeed(true)
      said = false
      return Effect.as(Effect.logInfo("the endpoints have been read: routing continues"), true)
    }
    since ??= timers.monotonicMs()
    const waited = Effect.as(nextLook, false)
    if (said || timers.monotonicMs() - since < logAfterMs) return waited
    said = true
    return Effect.andThen(
      Effect.logWarning("routing waits until the endpoints have been read again"),
      waited
    )
  })

  const passUntil = (until: number): Effect.Effect<void, EndpointsNotCurrent> =>
    Effect.suspend(() => {
      if (isCurrent()) return Effect.void
      return stopping() || timers.monotonicMs() > until
        ? Effect.fail(new EndpointsNotCurrent())
        : Effect.andThen(nextLook, passUntil(until))
    })

  return {
    isOpen: isCurrent,
    look,
    pass: Effect.suspend(() => passUntil(timers.monotonicMs() + limit))
  }
}
