/*
 * Answers POSTs and counts them. A minimal HTTP implementation on a socket instead of a server: it
 * must use less of the machine than what is measured with it.
 */
import type { Socket } from "node:net"
import { createServer } from "node:net"
import { now, readStamp, stampLength, stampMark } from "./clock.ts"
import type { Latency } from "./latency.ts"
import { makeLatencies } from "./latency.ts"

/** How a receiver behaves. */
export interface Behaviour {
  /** Time until the answer, ms. (Default: 0, at once) */
  readonly service?: number
  /**
   * Maximum number of concurrent requests. Further ones are refused with 429. (Default: unlimited)
   */
  readonly places?: number
  /** Refuses every request with 503. (Default: false) */
  readonly down?: boolean
  /** Refuses every Nth request with 503. (Default: none) */
  readonly failing?: number
}

/** A receiver's counts since its last reset. */
export interface Counted {
  /** Requests answered with 200. */
  readonly requests: number
  readonly refused: number
  /** Arrival of the first and the last request answered with 200, by the common clock. */
  readonly first: number
  readonly last: number
  /** Maximum number of concurrent requests. */
  readonly most: number
  /** Average time of a request in the receiver, including the timer's delay, ms. */
  readonly service: number
  /** From the time that an event was due to its arrival. Only events with a stamp. */
  readonly latency: Latency
}

/** A question to a receiver. It answers each with the counts so far. `reset` then clears them. */
export type Question =
  | { readonly do: "count" }
  | { readonly do: "reset" }
  | { readonly do: "behave"; readonly as: Behaviour }

const ok = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
const busy = Buffer.from("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n")
const unavailable = Buffer.from("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
const headEnd = Buffer.from("\r\n\r\n")
const lengthField = /\r\ncontent-length: (\d+)/i
/** Time to refuse a request that exceeds the limit, ms. */
const refusal = 1
const mark = stampMark.charCodeAt(0)

let behaviour: Behaviour = {}
/** Requests since the start, refused ones included. */
let taken = 0
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
  taken++
  if (behaviour.down || taken % (behaviour.failing ?? Number.POSITIVE_INFINITY) === 0) {
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
