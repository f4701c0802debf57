import type { IncomingMessage } from "node:http"
import { ParsedBefore } from "./answers.ts"
import type { Visit } from "./load.ts"
import { after } from "./machine.ts"

/** The body of a request, or why it was not read. */
export type ReadBody =
  | { readonly ok: true; readonly body: Uint8Array }
  | { readonly ok: false; readonly problem: "overloaded" | "too-large" | "too-slow" | "broken-off" }

/** A request as Node, Express and others have it. */
export type NodeRequest = IncomingMessage & {
  readonly body?: unknown
  readonly rawBody?: unknown
  readonly originalUrl?: unknown
}

const takeWhole = (body: Uint8Array, maxBytes: number, visit: Visit): ReadBody => {
  if (body.byteLength > maxBytes) return { ok: false, problem: "too-large" }
  return visit.take(body.byteLength) ? { ok: true, body } : { ok: false, problem: "overloaded" }
}

/**
 * Reads the bytes of a request that nothing has read before. Express's `raw()` and `rawBody` have them, too.
 *
 * @param withinMs how long the body may take to arrive.
 * @throws ParsedBefore if the bytes are gone, or may not be those that came.
 */
export const readNodeBody = async (
  request: NodeRequest,
  maxBytes: number,
  withinMs: number,
  visit: Visit,
  mend: string
): Promise<ReadBody> => {
  if (request.rawBody instanceof Uint8Array) return takeWhole(request.rawBody, maxBytes, visit)
  if (request.body instanceof Uint8Array) return takeWhole(request.body, maxBytes, visit)
  if (request.readableDidRead || request.readableEnded)
    throw new ParsedBefore(`the request's body was read before the receiver could: ${mend}`)
  if (Number(request.headers["content-length"] ?? 0) > maxBytes)
    return { ok: false, problem: "too-large" }
  const chunks: Array<Buffer> = []
  let length = 0
  return new Promise<ReadBody>((resolve) => {
    const settle = (read: ReadBody) => {
      cancel()
      request.off("data", onData)
      request.off("end", onEnd)
      request.off("error", onBroken)
      request.off("close", onBroken)
      // What still comes is not kept, and an error after this is of no use to anyone.
      request.on("error", () => undefined)
      if (!read.ok) request.pause()
      resolve(read)
    }
    const cancel = after(withinMs, () => settle({ ok: false, problem: "too-slow" }))
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > maxBytes) settle({ ok: false, problem: "too-large" })
      else if (visit.take(chunk.length)) chunks.push(chunk)
      else settle({ ok: false, problem: "overloaded" })
    }
    const onEnd = () => settle({ ok: true, body: Buffer.concat(chunks, length) })
    const onBroken = () => settle({ ok: false, problem: "broken-off" })
    request.on("data", onData)
    request.on("end", onEnd)
    request.on("error", onBroken)
    request.on("close", onBroken)
  })
}

/**
 * Reads the bytes of a `Request`.
 *
 * @throws ParsedBefore if the bytes are gone.
 */
export const readFetchBody = async (
  request: Request,
  maxBytes: number,
  withinMs: number,
  visit: Visit,
  mend: string
): Promise<ReadBody> => {
  if (request.bodyUsed)
    throw new ParsedBefore(`the request's body was read before the receiver could: ${mend}`)
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes)
    return { ok: false, problem: "too-large" }
  if (request.body === null) return { ok: true, body: new Uint8Array() }
  const reader = request.body.getReader()
  const chunks: Array<Uint8Array> = []
  let length = 0
  let isLate = false
  const cancel = after(withinMs, () => {
    isLate = true
    reader.cancel().catch(() => undefined)
  })
  const refuse = (problem: "overloaded" | "too-large"): ReadBody => {
    reader.cancel().catch(() => undefined)
    return { ok: false, problem }
  }
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (isLate) return { ok: false, problem: "too-slow" }
      if (done) return { ok: true, body: Buffer.concat(chunks, length) }
      length += value.byteLength
      if (length > maxBytes) return refuse("too-large")
      if (!visit.take(value.byteLength)) return refuse("overloaded")
      chunks.push(value)
    }
  } catch {
    return { ok: false, problem: isLate ? "too-slow" : "broken-off" }
  } finally {
    cancel()
  }
}
