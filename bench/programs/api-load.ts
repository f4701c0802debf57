/*
 * Publishes events over HTTP, each request as soon as the one before it on its connection is answered.
 *
 * Usage: `api-load.ts <address> <token>`, then jobs as messages.
 */

import { Pool } from "undici"
import { now } from "./clock.ts"
import { doJobs } from "./jobs.ts"

/** A job: the events to publish. */
export interface Requesting {
  readonly count: number
  /** Events of a request; 1: no batch. */
  readonly batch: number
  readonly connections: number
  /** Length of a body. */
  readonly bytes: number
}

/** The result: ms until all events were acknowledged. */
export interface Requested {
  readonly ms: number
}

const [, , address = "", token = ""] = process.argv
const path = "/v1/tenants/bench/events"
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }

const publish = async ({ batch, bytes, connections, count }: Requesting): Promise<Requested> => {
  const pool = new Pool(address, { connections, pipelining: 1 })
  const event = { type: "bench.api", data: "x".repeat(bytes - 2) }
  const body = JSON.stringify(batch === 1 ? event : Array.from({ length: batch }, () => event))
  const requests = Math.ceil(count / batch)
  let sent = 0
  const loop = async () => {
    while (sent < requests) {
      sent++
      const answer = await pool.request({ path, method: "POST", headers, body })
      const text = await answer.body.text()
      const stored = batch === 1 ? answer.statusCode === 201 : text.includes('"failed":0')
      if (!stored) throw new Error(`refused with ${answer.statusCode}: ${text.slice(0, 500)}`)
    }
  }
  const begun = now()
  await Promise.all(Array.from({ length: connections }, loop))
  const ms = now() - begun
  await pool.close()
  return { ms }
}

doJobs(publish)
