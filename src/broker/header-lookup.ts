import type { MsgHdrs } from "@nats-io/transport-node"
import type { GetHeader } from "../domain/event.ts"

/** Returns a lookup of a message's headers by lower-case name, whatever case they were sent in. */
export const headerOf = (headers: MsgHdrs | undefined): GetHeader => {
  const folded = new Map<string, string>()
  for (const [name, values] of headers ?? []) {
    const value = values[0]
    if (value !== undefined && value !== "") folded.set(name.toLowerCase(), value)
  }
  return (name) => folded.get(name)
}
