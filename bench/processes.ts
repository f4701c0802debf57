/* The processes of a measurement, and what the system says of them. */
import type { ChildProcess } from "node:child_process"
import { fork, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

const here = dirname(fileURLToPath(import.meta.url))

/** What a receiver has counted since it was asked to begin anew. */
export interface Counted {
  readonly requests: number
  /** When the first and the last request came, ms since the epoch. */
  readonly first: number
  readonly last: number
  /** µs, as process.cpuUsage counts. */
  readonly cpu: number
}

/** Starts another program of this directory. */
export const start = (program: string, args: ReadonlyArray<string | number> = []): ChildProcess =>
  fork(join(here, program), args.map(String))

/** The next message of a process. */
export const next = async <A>(child: ChildProcess): Promise<A> => (await once(child, "message"))[0]

/** Asks a receiver what it has counted; `reset` lets it begin anew. */
export const ask = (receiver: ChildProcess, what: "count" | "reset") => {
  const answer = next<Counted>(receiver)
  receiver.send(what)
  return answer
}

/** Waits until a receiver has counted so many requests. */
export const received = async (receiver: ChildProcess, requests: number): Promise<Counted> => {
  for (;;) {
    const counted = await ask(receiver, "count")
    if (counted.requests >= requests) return counted
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** CPU time of another process in µs, from /proc (0 where there is none, as on a Mac). */
export const cpuOf = (pid: number): number => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
    return (Number(fields[11]) + Number(fields[12])) * 10_000
  } catch {
    return 0
  }
}

/** Resident memory of another process in MiB, from /proc (0 where there is none). */
export const memoryOf = (pid: number): number => {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
  } catch {
    return 0
  }
}

/** A worker that may send to this machine, until the scope closes; and how long it took to deliver, ms. */
export const startWorker = (nats: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const started = performance.now()
      const child = spawn(
        process.execPath,
        [
          join(here, "../src/cli/main.ts"),
          ...["worker", "--nats", nats, "--allow-network", "127.0.0.0/8", "--json"]
        ],
        { stdio: ["ignore", "pipe", "ignore"] }
      )
      for await (const text of child.stdout
        .setEncoding("utf8")
        .iterator({ destroyOnReturn: false }))
        if (String(text).includes('"delivering"')) break
      child.stdout.resume()
      return { child, pid: child.pid ?? 0, after: performance.now() - started }
    }),
    ({ child }) =>
      Effect.promise(async () => {
        child.kill("SIGTERM")
        if (child.exitCode === null) await once(child, "exit")
      })
  )
