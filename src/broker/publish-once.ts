import { Effect } from "effect"
import type { BrokerError } from "./broker-error.ts"
import type { PubAck } from "./publication.ts"
import { PublishError } from "./publication.ts"

/** Stands in for the acknowledgement of a message that was found in the stream. */
const found: PubAck = { stream: "", seq: 0, duplicate: true }

/** Why a message is not known to be stored. */
export type StoreFailure = PublishError | "unknown"

/** True if a failed publish may have stored its message nonetheless. */
export const mayBeStored = ({ reason }: PublishError): boolean =>
  reason === "timeout" || reason === "closed"

/** Turns a failed search into a publish error that may be retried. */
const unanswered = ({ message, operation }: BrokerError) =>
  new PublishError({ subject: operation, reason: "timeout", code: 0, detail: message })

/**
 * The broker knows a `Nats-Msg-Id`, but its message is nowhere. The broker accepts the message
 * again once it has forgotten the id.
 */
const phantom = ({ stream }: PubAck) =>
  new PublishError({
    subject: stream,
    reason: "rejected",
    code: 0,
    detail: "the broker calls it a duplicate of what is not there"
  })

interface PublishOnceOptions {
  /** Whether an earlier attempt may have stored the message. (Default: false) */
  readonly tried?: boolean
  /**
   * Tells whether a duplicate acknowledgement refers to this message. Without it, `find` is used.
   */
  readonly isAt?: (duplicate: PubAck) => Effect.Effect<boolean, BrokerError>
}

/**
 * Makes a publish that stores its message only once, however often it is retried.
 *
 * The broker forgets a `Nats-Msg-Id` after a while. A restart makes it forget at once the id of a
 * message that has left its stream. So if an attempt may have stored the message, `find` looks for
 * it before the next one. An acknowledgement as a duplicate proves nothing by itself: the duplicate
 * is checked too.
 */
export const publishOnce = (
  publish: Effect.Effect<PubAck, PublishError>,
  find: Effect.Effect<boolean, BrokerError>,
  { isAt, tried = false }: PublishOnceOptions = {}
): Effect.Effect<PubAck, PublishError> => {
  let uncertain = tried
  const look = Effect.mapError(find, unanswered)
  const confirm = (duplicate: PubAck) =>
    Effect.flatMap(
      isAt === undefined ? look : Effect.mapError(isAt(duplicate), unanswered),
      (isThere) =>
        isThere
          ? Effect.succeed(duplicate)
          : isAt === undefined
            ? Effect.fail(phantom(duplicate))
            : Effect.flatMap(look, (isStored) =>
                isStored ? Effect.succeed(duplicate) : Effect.fail(phantom(duplicate))
              )
    )
  const store = publish.pipe(
    Effect.tapError((error) =>
      Effect.sync(() => {
        uncertain ||= mayBeStored(error)
      })
    ),
    Effect.flatMap((stored) => (stored.duplicate ? confirm(stored) : Effect.succeed(stored)))
  )
  const lookFirst = () =>
    Effect.flatMap(look, (isStored) => (isStored ? Effect.succeed(found) : store))
  return Effect.suspend(() => (uncertain ? lookFirst() : store))
}
