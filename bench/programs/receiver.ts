/*
 * Answers POSTs and counts them. A few lines of HTTP on a socket instead of a server: it must take
 * less of the machine than what is measured against it.
 */
import type { Socket } from "node:net"
import { createServer } from "node:net"
import { now, readStamp, stampLength, stampMark } from "./clock.ts"
import type { Latency } from "./latency.ts"
import { makeLatencies } from "./latency.ts"

/** How a receiver behaves. */
export interface Behaviour {
  /** ms until the answer. (Default: 0, at once) */
  readonly service?: number
  /** Requests that find room at the same time; the others are refused with 429. (Default: any number) */
  readonly places?: number
  /** Every request is refused with 503. (Default: none is) */
  readonly down?: boolean
}

/** What a receiver has counted since it was asked to begin anew. */
export interface Counted {
  /** Answered with 200. */
  readonly requests: number
  readonly refused: number
  /** When the first and the last request came that was answered with 200, by the common clock. */
  readonly first: number
  readonly last: number
  /** Most at the same time. */
  readonly most: number
  /** ms that a request took here on average, the timer's delay included. */
  readonly service: number
  /** From when an event was due to its arrival; of those with a stamp. */
  readonly latency: Latency
}

/** What a receiver is asked: each question gets what was counted so far; after `reset` it begins anew. */
export type Question =
  | { readonly do: "count" }
  | { readonly do: "reset" }
  | { readonly do: "behave"; readonly as: Behaviour }

const ok = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
const busy = Buffer.from("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n")
const unavailable = Buffer.from("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
const headEnd = Buffer.from("\r\n\r\n")
const lengthField = /\r\ncontent-length: (\d+)/i
/** How long it takes to refuse for want of a place, ms. */
const refusal = 1
const mark = stampMark.charCodeAt(0)

let behaviour: Behaviour = {}
let inFlight = 0
let requests = 0
let refused = 0
let first = 0
let last = 0
let most = 0
let served = 0
const latencies = makeLatencies()

const reset = () => {
  requests = refused = first = last = served = 0
  most = inFlight
  latencies.reset()
}

const take = (socket: Socket) => {
  if (behaviour.down) {
    refused++
    socket.write(unavailable)
    return
  }
  const came = now()
  inFlight++
  if (inFlight > most) most = inFlight
  const fits = inFlight <= (behaviour.places ?? Number.POSITIVE_INFINITY)
  const answer = () => {
    inFlight--
    if (fits) {
      served += now() - came
      if (requests === 0) first = came
      last = came
      requests++
    } else refused++
    if (!socket.destroyed) socket.write(fits ? ok : busy)
  }
  const wait = fits ? behaviour.service : refusal
  if (wait) setTimeout(answer, wait)
  else answer()
}

const server = createServer({ noDelay: true }, (socket) => {
  let rest: Buffer = Buffer.alloc(0)
  let missing = 0
  socket.on("error", () => undefined)
  socket.on("data", (chunk: Buffer) => {
    let data: Buffer = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (data.length > 0) {
      if (missing > 0) {
        const taken = Math.min(missing, data.length)
        missing -= taken
        data = data.subarray(taken)
        if (missing === 0) take(socket)
        continue
      }
      const end = data.indexOf(headEnd)
      if (end === -1) break
      const length = Number(lengthField.exec(data.toString("latin1", 0, end))?.[1] ?? 0)
      const body = end + headEnd.length
      if (length >= stampLength) {
        if (data.length < body + stampLength) break
        if (data[body] === mark && !behaviour.down) latencies.record(now() - readStamp(data, body))
      }
      data = data.subarray(body)
      if (length === 0) take(socket)
      else missing = length
    }
    rest = data
  })
})

process.on("message", (question: Question) => {
  if (question.do === "behave") behaviour = question.as
  const service = requests === 0 ? 0 : served / requests
  const latency = latencies.read()
  const counted: Counted = { requests, refused, first, last, most, service, latency }
  process.send?.(counted)
  if (question.do === "reset") reset()
})
process.once("disconnect", () => process.exit(0))
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.send?.({ port: typeof address === "object" ? address?.port : 0 })
})
