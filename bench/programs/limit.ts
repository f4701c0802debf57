/*
 * The limit: signs and POSTs with undici and does nothing else. Its rate is what an engine without
 * durability could reach.
 *
 * Usage: `limit.ts <url>`, then jobs as messages.
 */
import { createHmac, createSecretKey } from "node:crypto"
import { Agent, request } from "undici"
import { now, stamp, stampLength } from "./clock.ts"
import type { Latency } from "./latency.ts"
import { makeLatencies } from "./latency.ts"
import { openLoop } from "./schedule.ts"

/** A job: the requests to POST. */
export interface Posting {
  readonly count: number
  readonly endpoints: number
  /** Length of a body. */
  readonly bytes: number
  /** Number of concurrent requests: each answer starts the next one. */
  readonly atOnce?: number
  /** Sends on a schedule. Each body begins with the time that it was due. */
  readonly perSecond?: number
}

/** The result: ms until all requests were answered, and how late scheduled requests were sent. */
export interface Posted {
  readonly ms: number
  readonly late: Latency
}

const url = process.argv[2] ?? ""
const key = createSecretKey(Buffer.alloc(32, 7))
const dispatcher = new Agent({ pipelining: 1 })

const postOne = async (number: number, endpoints: number, body: Buffer) => {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const id = `evt_${number}`
  const signature = createHmac("sha256", key)
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest("base64")
  const answer = await request(`${url}/${number % endpoints}`, {
    method: "POST",
    body,
    dispatcher,
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-event-type": "invoice.paid",
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${signature}`
    }
  })
  if (answer.statusCode !== 200) throw new Error(`the receiver answers ${answer.statusCode}`)
  await answer.body.dump()
}

const post = async ({ atOnce = 1, bytes, count, endpoints, perSecond }: Posting) => {
  const late = makeLatencies()
  const begun = now()
  if (perSecond === undefined) {
    const body = Buffer.alloc(bytes, "x")
    let left = count
    const loop = async () => {
      while (left-- > 0) await postOne(left, endpoints, body)
    }
    await Promise.all(Array.from({ length: atOnce }, loop))
  } else {
    const rest = Buffer.alloc(bytes - stampLength, "x")
    const requests: Array<Promise<void>> = []
    await openLoop(perSecond, count, (number, due) => {
      const body = Buffer.concat([Buffer.from(stamp(due)), rest])
      requests.push(postOne(number, endpoints, body))
      late.record(now() - due)
    })
    await Promise.all(requests)
  }
  const posted: Posted = { ms: now() - begun, late: late.read() }
  process.send?.(posted)
}

process.on("message", (job: Posting) => void post(job))
process.once("disconnect", () => process.exit(0))
process.send?.({})
