/*
 * The limit: signs and POSTs with undici and does nothing else. What it does in a second is what an
 * engine without durability could do.
 *   limit.ts <url>, then jobs as messages.
 */
import { createHmac, createSecretKey } from "node:crypto"
import { Agent, request } from "undici"
import { now, stamp, stampLength } from "./clock.ts"
import type { Latency } from "./latency.ts"
import { makeLatencies } from "./latency.ts"
import { openLoop } from "./schedule.ts"

/** What to POST. */
export interface Posting {
  readonly count: number
  readonly endpoints: number
  /** Of a body. */
  readonly bytes: number
  /** So many requests at the same time, the next one when one is answered. */
  readonly atOnce?: number
  /** On a schedule, each body beginning with when it was due. */
  readonly perSecond?: number
}

/** What came of it: ms until all was answered, and how late what was due was sent. */
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
