import type { Msg, MsgHdrs } from "@nats-io/transport-node"
import { MsgImpl } from "@nats-io/transport-node"
import type { GetHeader } from "../domain/header-names.ts"

const none: GetHeader = () => undefined

/**
 * Returns a lookup of a received message's headers by lower-case name. Of several headers with one
 * name it returns the first that is not empty, like headers read from a stored message. The
 * client's own headers object is mutable and searchable in any case, which takes four times as
 * long.
 */
export const headersOf = (message: Msg): GetHeader => {
  const block = message instanceof MsgImpl ? message._msg.hdr : 0
  if (!(message instanceof MsgImpl) || block <= 0) return none
  const { buffer, byteOffset } = message._rdata
  const bytes = Buffer.from(buffer, byteOffset, block)
  // latin1 maps one byte to one character, so that positions in the text and in the bytes agree.
  const text = bytes.toString("latin1")
  return (name) => valueIn(text, bytes, name)
}

const lineEnd = "\r\n"

/**
 * Scans the lines for each name: that is cheaper than a table for a few headers. The value is
 * decoded from the bytes: a substring would keep the whole text alive, and take twice as long to
 * serialize as JSON.
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

/** Returns a lookup of a message's headers by lower-case name, whatever case they were sent in. */
export const headerOf = (headers: MsgHdrs | undefined): GetHeader => {
  const folded = new Map<string, string>()
  for (const [name, values] of headers ?? []) {
    const value = values[0]
    if (value !== undefined && value !== "") folded.set(name.toLowerCase(), value)
  }
  return (name) => folded.get(name)
}
