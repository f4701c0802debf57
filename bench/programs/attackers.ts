/*
 * Tenants that attack a console with everything at once.
 *
 * Usage: `attackers.ts <address> <nats url>`, then jobs as messages.
 */

import { createServer } from "node:net"
import { connect } from "@nats-io/transport-node"
import type { Answered } from "./attacks.ts"
import { attacksOf } from "./attacks.ts"
import { doJobs } from "./jobs.ts"

/** A job: the tenants that attack, with their tokens, and for how long. */
export interface Attacking {
  readonly tenants: ReadonlyArray<{ readonly tenant: string; readonly token: string }>
  readonly ms: number
}

/** The result: how often what was answered, by attack. */
export interface Attacked {
  readonly answers: Readonly<Record<string, Readonly<Record<string, number>>>>
}

const [, , address = "", nats = ""] = process.argv

const silent = await new Promise<string>((resolve) => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined)
    socket.resume()
  })
  server.listen(0, "127.0.0.1", () => {
    const at = server.address()
    resolve(`http://127.0.0.1:${typeof at === "object" ? at?.port : 0}/`)
  })
})

const pauseOf = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const attack = async ({ ms, tenants }: Attacking): Promise<Attacked> => {
  const until = performance.now() + ms
  const answers: Record<string, Record<string, number>> = {}
  await Promise.all(
    tenants.map(async ({ tenant, token }, index) => {
      const connection = await connect({ servers: nats })
      const askNats = async (subject: string, body: string): Promise<Answered> => {
        try {
          const answer = await connection.request(subject, body, { timeout: 30_000 })
          return Number(answer.headers?.get("Nats-Service-Error-Code") || 200)
        } catch {
          return "no answer"
        }
      }
      const attacker = { tenant, token, silent, localAddress: `127.0.0.${index + 2}` }
      const loops = attacksOf(address, attacker, askNats).flatMap(
        ({ atOnce, make, name, pause }) => {
          const counts: Record<string, number> = {}
          answers[name] ??= counts
          const all = answers[name]
          let number = 0
          return Array.from({ length: atOnce }, async () => {
            while (performance.now() < until) {
              const answered = String(await make(number++))
              all[answered] = (all[answered] ?? 0) + 1
              await pauseOf(pause)
            }
          })
        }
      )
      // What hangs is left behind.
      await Promise.race([Promise.all(loops), pauseOf(until - performance.now() + 1_000)])
      await connection.close()
    })
  )
  return { answers }
}

doJobs(attack)
