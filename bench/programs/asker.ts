/*
 * A client that asks a console questions, one after the other, and notes what each answer took.
 *
 * Usage: `asker.ts <address> <token> <pid of the console> <pid of the broker>`, then jobs as messages.
 */
import { readdirSync, readFileSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Pool } from "undici"
import { doJobs } from "./jobs.ts"

/** One request. */
export interface Question {
  /** What the results call it: `events/EVENT`, `events/unknown`, `v1/status`. One outside of /v1 begins with `/`. */
  readonly name: string
  readonly path: string
  /** Whether it is about something that is not there, and may be answered 404. */
  readonly isUnknown: boolean
}

/** A job: to ask all questions in turn, and all of them again. */
export interface Asking {
  readonly questions: ReadonlyArray<Question>
  readonly times: number
}

/** What one question took, ms: until its answer was there, and of the CPU meanwhile. */
export interface Took {
  readonly ms: number
  readonly console: number
  readonly broker: number
}

/** The result: what the answers took, by question. */
export interface Asked {
  readonly took: ReadonlyArray<readonly [name: string, took: ReadonlyArray<Took>]>
}

const [, , address = "", token = "", consolePid = "", brokerPid = ""] = process.argv

/**
 * Returns the CPU time of another process in ms, to µs and so also of a single request, from /proc (0
 * without /proc). Threads that have ended are not counted.
 */
const cpuOf = (pid: string): number => {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8"))
      .reduce((sum, text) => sum + Number.parseInt(text, 10) / 1e6, 0)
  } catch {
    return 0
  }
}

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as NodeJS.GCFunction

const pool = new Pool(address, { connections: 1, pipelining: 1 })
const headers = { authorization: `Bearer ${token}` }

const ask = async ({ isUnknown, path }: Question): Promise<Took> => {
  // A collection while it waits would count as the console's time: 10 to 20 ms of each 30th answer.
  collect({ type: "minor" })
  const before = { console: cpuOf(consolePid), broker: cpuOf(brokerPid) }
  const began = performance.now()
  const answer = await pool.request({ path, method: "GET", headers })
  const text = await answer.body.text()
  const ms = performance.now() - began
  const isFine = answer.statusCode === 200 || (answer.statusCode === 404 && isUnknown)
  if (!isFine) throw new Error(`${path}: ${answer.statusCode} ${text}`)
  return {
    ms,
    console: cpuOf(consolePid) - before.console,
    broker: cpuOf(brokerPid) - before.broker
  }
}

doJobs(async ({ questions, times }: Asking): Promise<Asked> => {
  const took = questions.map(({ name }) => [name, [] as Array<Took>] as const)
  for (let time = 0; time < times; time++)
    for (const [at, question] of questions.entries()) took[at]?.[1].push(await ask(question))
  return { took }
})
