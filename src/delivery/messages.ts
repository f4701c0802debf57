import type { JsMsg } from "@nats-io/jetstream"
import type { GetHeader } from "../domain/event.ts"

/**
 * Reads a message's headers as the domain asks for them: by lower-case name, whatever case they
 * were sent in. All names are folded once; the client would fold them at each look-up.
 */
export const headerOf = (message: Pick<JsMsg, "headers">): GetHeader => {
  const folded = new Map<string, string>()
  for (const [name, values] of message.headers ?? []) {
    const value = values[0]
    if (value !== undefined && value !== "") folded.set(name.toLowerCase(), value)
  }
  return (name) => folded.get(name)
}

/** When the broker stored a message, ms since the epoch. */
export const storedAt = (message: JsMsg): number =>
  Math.floor(message.info.timestampNanos / 1_000_000)
