/*
 * A tenant that publishes over HTTP on a schedule, and looks at its endpoints now and then.
 *
 * Usage: `neighbour.ts <address> <token> <tenant>`, then jobs as messages.
 */

import { Pool } from "undici"
import { now, stamp, stampLength } from "./clock.ts"
import { doJobs } from "./jobs.ts"
import type { Latency } from "./latency.ts"
import { makeLatencies } from "./latency.ts"
import { openLoop } from "./schedule.ts"

/** A job: the events to publish. */
export interface Neighbouring {
  readonly count: number
  readonly perSecond: number
  readonly bytes: number
}

/** The result: requests that were refused or not answered, by what happened, and how long answers took. */
export interface Neighboured {
  readonly stored: number
  readonly refused: Readonly<Record<string, number>>
  readonly answers: Latency
}

/** How often it looks at its endpoints: once for so many events. */
const looksEach = 10

const [, , address = "", token = "", tenant = ""] = process.argv
const root = `/v1/tenants/${tenant}`

const publish = async ({ bytes, count, perSecond }: Neighbouring): Promise<Neighboured> => {
  const pool = new Pool(address, { connections: 16, pipelining: 1 })
  const answers = makeLatencies()
  const refused: Record<string, number> = {}
  let stored = 0
  const rest = Buffer.alloc(bytes - stampLength, "x")
  const ask = async (method: "GET" | "POST", path: string, due: number, body?: Buffer) => {
    let happened: string
    try {
      const authorization = `Bearer ${token}`
      const headers = { authorization, "content-type": "application/octet-stream" }
      const signal = AbortSignal.timeout(60_000)
      const answer = await pool.request({ path, method, headers, body: body ?? null, signal })
      const text = await answer.body.text()
      if (answer.statusCode === 201 || answer.statusCode === 200) {
        if (method === "POST") stored++
        answers.record(now() - due)
        return
      }
      happened = `${method} ${answer.statusCode} ${text.slice(0, 200)}`
    } catch (error) {
      happened = `${method} ${error instanceof Error ? error.message : String(error)}`
    }
    refused[happened] = (refused[happened] ?? 0) + 1
  }
  const requests: Array<Promise<void>> = []
  await openLoop(perSecond, count, (number, due) => {
    const body = Buffer.concat([Buffer.from(stamp(due)), rest])
    requests.push(ask("POST", `${root}/raw-events/fifth.event`, due, body))
    if (number % looksEach === 0) requests.push(ask("GET", `${root}/endpoints`, due))
  })
  await Promise.all(requests)
  await pool.close()
  return { stored, refused, answers: answers.read() }
}

doJobs(publish)
