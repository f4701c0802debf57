import type { IncomingMessage } from "node:http"

/** A body, or why it was not read. */
export type ReadBody =
  | { readonly as: "body"; readonly body: Buffer }
  | { readonly as: "too-large" | "no-capacity" | "broken-off" }

/** A body that is being read. */
export interface BodyReading {
  readonly read: Promise<ReadBody>
  /** Ends it with `no-capacity`. */
  readonly cancel: () => void
}

/** Returns the length that a request says its body has, bytes; undefined where it says none. */
export const declaredLength = ({ headers }: IncomingMessage): number | undefined => {
  const declared = headers["content-length"]
  return declared === undefined ? undefined : Number(declared)
}

const nothing = Buffer.alloc(0)

/**
 * Reads a request's body. Capacity is taken for what has come, and not for what a client says will. The
 * bytes are in one piece at any time: chunks of a few bytes each would take many times their length.
 *
 * @param max its upper bound, bytes.
 * @param takeCapacity takes capacity for so many bytes, which the caller gives back. Returns false if there is none.
 */
export const readBody = (
  request: IncomingMessage,
  max: number,
  takeCapacity: (bytes: number) => boolean
): BodyReading => {
  const expected = declaredLength(request)
  let end: (read: ReadBody) => void = () => undefined
  const read = new Promise<ReadBody>((resolve) => {
    let bytes: Buffer = nothing
    let length = 0
    end = (result) => {
      request.removeAllListeners("data")
      end = () => undefined
      resolve(result)
    }
    request.on("data", (chunk: Buffer) => {
      const needed = length + chunk.length
      if (needed > max) return end({ as: "too-large" })
      if (needed > bytes.length) {
        const size =
          length === 0 ? chunk.length : Math.min(expected ?? max, Math.max(needed, 2 * length))
        if (!takeCapacity(size - bytes.length)) return end({ as: "no-capacity" })
        if (length === 0) bytes = chunk
        else {
          const larger = Buffer.allocUnsafeSlow(size)
          bytes.copy(larger, 0, 0, length)
          bytes = larger
        }
      }
      if (bytes !== chunk) chunk.copy(bytes, length)
      length = needed
    })
    request.once("end", () => end({ as: "body", body: bytes.subarray(0, length) }))
    const brokenOff = () => end({ as: "broken-off" })
    request.once("error", brokenOff)
    request.once("aborted", brokenOff)
    request.once("close", () => {
      if (!request.complete) brokenOff()
    })
  })
  return { read, cancel: () => end({ as: "no-capacity" }) }
}
