import type { Msg } from "@nats-io/transport-node"
import { MsgImpl } from "@nats-io/transport-node"
import type { GetHeader } from "../domain/event.ts"

const none: GetHeader = () => undefined

/**
 * The headers of a message that has just come, by their lower-case names: of several of one name
 * the first that is not empty, as in what a broker has stored. The client's own can be
 * changed and searched in any case, which takes four times as long.
 */
export const headersOf = (message: Msg): GetHeader => {
  const block = message instanceof MsgImpl ? message._msg.hdr : 0
  if (!(message instanceof MsgImpl) || block <= 0) return none
  const { buffer, byteOffset } = message._rdata
  const [, ...lines] = Buffer.from(buffer, byteOffset, block).toString().split("\r\n")
  const values = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(":")
    const value = line.slice(colon + 1).trim()
    if (colon <= 0 || value === "") continue
    const name = line.slice(0, colon).toLowerCase()
    if (!values.has(name)) values.set(name, value)
  }
  return (name) => values.get(name)
}
