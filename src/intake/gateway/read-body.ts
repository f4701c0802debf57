import type { IncomingMessage } from "node:http"

/** Room for bytes in memory. */
interface Room {
  /** Returns false, and takes nothing, if there is none. */
  readonly take: (bytes: number) => boolean
  readonly give: (bytes: number) => void
}

/** A body, or why it was not read. `bytes` is the room that it has taken. */
export type ReadBody =
  | { readonly as: "body"; readonly body: Buffer; readonly bytes: number }
  | { readonly as: "too-large" | "no-room" | "broken-off"; readonly bytes: number }

/** Room that is taken at a time for a body of unknown length, bytes. */
const step = 64 * 1024

/**
 * Reads a request's body.
 *
 * @param max its upper bound, bytes.
 */
export const readBody = (request: IncomingMessage, max: number, room: Room): Promise<ReadBody> =>
  new Promise((resolve) => {
    const declared = request.headers["content-length"]
    const expected = declared === undefined ? undefined : Number(declared)
    if (expected !== undefined && expected > max) return resolve({ as: "too-large", bytes: 0 })
    const isChunked = request.headers["transfer-encoding"] !== undefined
    let bytes = expected ?? (isChunked ? step : 0)
    if (!room.take(bytes)) return resolve({ as: "no-room", bytes: 0 })
    const chunks: Array<Buffer> = []
    let length = 0
    const end = (read: ReadBody) => {
      request.removeAllListeners("data")
      if (read.as !== "body") request.resume()
      resolve(read)
    }
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
      if (length > max) return end({ as: "too-large", bytes })
      while (length > bytes) {
        if (!room.take(step)) return end({ as: "no-room", bytes })
        bytes += step
      }
      chunks.push(chunk)
    })
    request.once("end", () => {
      const [only] = chunks
      const body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, length)
      end({ as: "body", body, bytes })
    })
    const brokenOff = () => end({ as: "broken-off", bytes })
    request.once("error", brokenOff)
    request.once("aborted", brokenOff)
    request.once("close", () => {
      if (!request.complete) brokenOff()
    })
  })
