import { Effect, Schema } from "effect"
import type { Directory } from "../endpoints/directory.ts"

/** How long it is waited at a time before it is asked whether the worker stops, ms. */
const pollMs = 250
/** How long routing may wait before that is worth a line in the log, ms. */
const logAfterMs = 2_000

/** An event was not planned, because nobody knew whether all endpoints are known. */
export class EndpointsNotCurrent extends Schema.TaggedError<EndpointsNotCurrent>()(
  "EndpointsNotCurrent",
  {}
) {
  override get message() {
    return "the endpoints could not be read again in time"
  }
}

/** Keeps plans back while an endpoint may be missing from what is known here. */
export interface DirectoryGate {
  /** Whether a plan may be made now. */
  readonly isOpen: () => boolean
  /**
   * True where a plan may be made; else waits for it for a moment, and says false. For one caller
   * that asks again and again: it says once that routing waits, and once that it goes on.
   */
  readonly look: Effect.Effect<boolean>
  /** Waits until a plan may be made. Fails where that takes too long, or the worker stops. */
  readonly pass: Effect.Effect<void, EndpointsNotCurrent>
}

/**
 * Plans only by what the directory knows to be current: an endpoint that it has not heard of would be
 * left out of them, and nobody could tell.
 *
 * @param limit how long an event in hand may wait, ms.
 */
export const makeDirectoryGate = (
  { current, isCurrent }: Pick<Directory["Service"], "current" | "isCurrent">,
  { limit, stopping }: { readonly limit: number; readonly stopping: () => boolean }
): DirectoryGate => {
  let since: number | undefined
  let said = false
  const moment = Effect.raceFirst(current, Effect.sleep(pollMs))

  const look = Effect.suspend(() => {
    if (isCurrent()) {
      since = undefined
      if (!said) return Effect.succeed(true)
      said = false
      return Effect.as(Effect.logInfo("the endpoints have been read: routing goes on"), true)
    }
    since ??= performance.now()
    const waited = Effect.as(moment, false)
    if (said || performance.now() - since < logAfterMs) return waited
    said = true
    return Effect.andThen(
      Effect.logWarning("routing waits until the endpoints have been read again"),
      waited
    )
  })

  const passUntil = (until: number): Effect.Effect<void, EndpointsNotCurrent> =>
    Effect.suspend(() => {
      if (isCurrent()) return Effect.void
      return stopping() || performance.now() > until
        ? Effect.fail(new EndpointsNotCurrent())
        : Effect.andThen(moment, passUntil(until))
    })

  return {
    isOpen: isCurrent,
    look,
    pass: Effect.suspend(() => passUntil(performance.now() + limit))
  }
}
