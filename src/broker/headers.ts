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
  const bytes = Buffer.from(buffer, byteOffset, block)
  // One character for each byte, so that what is found in one is found in the other.
  const text = bytes.toString("latin1")
  return (name) => valueIn(text, bytes, name)
}

const lineEnd = "\r\n"

/**
 * The lines are gone through for each name: that is less than to make a table of a few headers.
 * A value is read from the bytes, for as a part of the text it would keep all of that, and take
 * twice as long to be written as JSON.
 */
const valueIn = (text: string, bytes: Buffer, name: string): string | undefined => {
  let from = text.indexOf(lineEnd) + lineEnd.length
  while (from > 1) {
    const next = text.indexOf(lineEnd, from)
    if (next === -1) return undefined
    const colon = from + name.length
    if (text[colon] === ":" && text.slice(from, colon).toLowerCase() === name) {
      const start = text[colon + 1] === " " ? colon + 2 : colon + 1
      const value = bytes.toString("utf8", start, next).trim()
      if (value !== "") return value
    }
    from = next + lineEnd.length
  }
  return undefined
}
