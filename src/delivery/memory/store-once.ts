import { Effect } from "effect"
import type { BrokerError } from "../../broker/connection.ts"
import type { PubAck } from "../../broker/publisher.ts"
import { PublishError } from "../../broker/publisher.ts"

/** Stands for the acknowledgement of a message that was found to be stored. */
const found: PubAck = { stream: "", seq: 0, duplicate: true }

/** Why something is not known to be stored. */
export type Lack = PublishError | "unknown"

/** True where a message that could not be published may have been stored nonetheless. */
export const mayBeStored = ({ reason }: PublishError): boolean =>
  reason === "timeout" || reason === "closed"

/**
 * A publish that stores its message once though it is run again until it succeeds. The broker
 * forgets a `Nats-Msg-Id` after a while; a restart makes it forget at once that of a message which
 * has left its stream. So where a try may have stored it, `find` looks for it before the next.
 *
 * @param tried whether somebody may have tried before.
 */
export const storeOnce = (
  publish: Effect.Effect<PubAck, PublishError>,
  find: Effect.Effect<boolean, BrokerError>,
  tried = false
): Effect.Effect<PubAck, PublishError> => {
  let uncertain = tried
  const store = Effect.tapError(publish, (error) =>
    Effect.sync(() => {
      uncertain ||= mayBeStored(error)
    })
  )
  const lookFirst = () =>
    find.pipe(
      Effect.mapError(
        ({ message, operation }) =>
          new PublishError({ subject: operation, reason: "timeout", code: 0, detail: message })
      ),
      Effect.flatMap((isStored) => (isStored ? Effect.succeed(found) : store))
    )
  return Effect.suspend(() => (uncertain ? lookFirst() : store))
}
