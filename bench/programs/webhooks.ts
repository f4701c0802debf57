/*
 * Sends webhooks to a gateway as GitHub does, all with the same body and ids of their own.
 *
 * Usage: `webhooks.ts <address of a source> <secret>`, then jobs as messages.
 */
import { createHmac } from "node:crypto"
import { Pool } from "undici"
import { now } from "./clock.ts"
import { doJobs } from "./jobs.ts"
import { type Latency, makeLatencies } from "./latency.ts"

/** A job: each connection sends again once it has an answer, or so many are sent each second. */
export type Hooking = {
  readonly connections: number
  /** Length of a body. */
  readonly bytes: number
  /** The beginning of the ids, which are new ones. */
  readonly prefix: string
} & ({ readonly count: number } | { readonly perSecond: number; readonly seconds: number })

/** The result. */
export interface Hooked {
  readonly ms: number
  /** Answered with 2xx, with 503 or 429, and in any other way. */
  readonly taken: number
  readonly refused: number
  readonly other: number
  /** Webhooks that were due while no connection was free. */
  readonly unsent: number
  readonly takenMs: Latency
  readonly refusedMs: Latency
}

const [, , address = "", secret = ""] = process.argv
const { origin, pathname } = new URL(address)

const send = async (job: Hooking): Promise<Hooked> => {
  const { bytes, connections, prefix } = job
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const body = Buffer.from(JSON.stringify({ ref: "x".repeat(bytes - 10) }))
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`
  const [taken, refused] = [makeLatencies(), makeLatencies()]
  const counts = { taken: 0, refused: 0, other: 0, unsent: 0 }
  let sent = 0
  const one = async () => {
    const begun = now()
    const headers = {
      "content-type": "application/json",
      "x-github-event": "push",
      "x-github-delivery": `${prefix}-${sent++}`,
      "x-hub-signature-256": signature
    }
    const answer = await pool
      .request({ path: pathname, method: "POST", headers, body })
      .catch(() => undefined)
    await answer?.body.dump()
    const status = answer?.statusCode ?? 0
    const ms = now() - begun
    if (status >= 200 && status < 300) {
      counts.taken++
      taken.record(ms)
    } else if (status === 503 || status === 429) {
      counts.refused++
      refused.record(ms)
    } else counts.other++
  }
  const begun = now()
  if ("count" in job) {
    const loop = async () => {
      while (sent < job.count) await one()
    }
    await Promise.all(Array.from({ length: connections }, loop))
  } else {
    let due = 0
    let underWay = 0
    const all: Array<Promise<void>> = []
    while (now() - begun < job.seconds * 1_000) {
      const wanted = ((now() - begun) * job.perSecond) / 1_000
      for (; due < wanted; due++)
        if (underWay >= connections) counts.unsent++
        else {
          underWay++
          all.push(one().finally(() => underWay--) as Promise<unknown> as Promise<void>)
        }
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    await Promise.all(all)
  }
  const ms = now() - begun
  await pool.close()
  return { ms, ...counts, takenMs: taken.read(), refusedMs: refused.read() }
}

doJobs(send)
