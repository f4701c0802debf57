import type { JsMsg } from "@nats-io/jetstream"
import { Match } from "@nats-io/transport-node"
import type { GetHeader } from "../domain/event.ts"

/** Reads a message's headers as the domain asks for them. */
export const headerOf =
  (message: Pick<JsMsg, "headers">): GetHeader =>
  (name) =>
    nonEmpty(message.headers?.get(name, Match.IgnoreCase))

const nonEmpty = (text: string | undefined) => (text === "" ? undefined : text)

/** When the broker stored a message, ms since the epoch. */
export const storedAt = (message: JsMsg): number =>
  Math.floor(message.info.timestampNanos / 1_000_000)
