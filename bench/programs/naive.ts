/*
 * A naive sender: POSTs each event when it is due, and again after a fixed pause for as long as it
 * fails. It has no cap, no circuit and no jitter.
 *
 * Usage: `naive.ts <url>`, then jobs as messages.
 */
import { Agent, request } from "undici"
import { openLoop } from "./schedule.ts"

/** A job: the events to send. */
export interface NaiveSending {
  readonly count: number
  readonly perSecond: number
  /** Length of a body. */
  readonly bytes: number
  /** Pause before a failed event is sent again, ms. */
  readonly retryMs: number
}

/** The result: ms until all events were delivered. */
export interface NaivelySent {
  readonly ms: number
}

/** Time-out of a request, ms. */
const timeoutMs = 10_000

const url = process.argv[2] ?? ""
const dispatcher = new Agent({ pipelining: 1 })

const isDelivered = async (body: Buffer): Promise<boolean> => {
  try {
    const headers = { "content-type": "application/json" }
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await request(url, { method: "POST", body, dispatcher, headers, signal })
    await answer.body.dump()
    return answer.statusCode === 200
  } catch {
    return false
  }
}

const send = async ({ bytes, count, perSecond, retryMs }: NaiveSending) => {
  const begun = performance.now()
  const body = Buffer.alloc(bytes, "x")
  const deliver = async () => {
    while (!(await isDelivered(body))) await new Promise((resolve) => setTimeout(resolve, retryMs))
  }
  const deliveries: Array<Promise<void>> = []
  await openLoop(perSecond, count, () => deliveries.push(deliver()))
  await Promise.all(deliveries)
  const sent: NaivelySent = { ms: performance.now() - begun }
  process.send?.(sent)
}

process.on("message", (job: NaiveSending) => void send(job))
process.once("disconnect", () => process.exit(0))
process.send?.({})
