import { Effect } from "effect"
import type { BrokerError } from "./connection.ts"
import type { PubAck } from "./publisher.ts"
import { PublishError } from "./publisher.ts"

/** Stands for the acknowledgement of a message that was found to be stored. */
const found: PubAck = { stream: "", seq: 0, duplicate: true }

/** Why something is not known to be stored. */
export type StoreFailure = PublishError | "unknown"

/** True where a message that could not be published may have been stored nonetheless. */
export const mayBeStored = ({ reason }: PublishError): boolean =>
  reason === "timeout" || reason === "closed"

/** A search that did not come to its end, as a publish that may be tried again. */
const unanswered = ({ message, operation }: BrokerError) =>
  new PublishError({ subject: operation, reason: "timeout", code: 0, detail: message })

/** The broker knows a `Nats-Msg-Id`, and what it was for is nowhere: it is taken again once that is forgotten. */
const phantom = ({ stream }: PubAck) =>
  new PublishError({
    subject: stream,
    reason: "rejected",
    code: 0,
    detail: "the broker calls it a duplicate of what is not there"
  })

export interface PublishOnceOptions {
  /** Whether somebody may have tried before. (Default: false) */
  readonly tried?: boolean
  /** Whether it is what the broker calls a duplicate of; looked for where this is not given. */
  readonly isAt?: (duplicate: PubAck) => Effect.Effect<boolean, BrokerError>
}

/**
 * A publish that stores its message once though it is run again until it succeeds. The broker
 * forgets a `Nats-Msg-Id` after a while; a restart makes it forget at once that of a message which
 * has left its stream. So where a try may have stored it, `find` looks for it before the next. And
 * that the broker knows an id proves nothing: what it calls a duplicate is looked at.
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
