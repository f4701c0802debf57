import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { inject } from "vitest"
import { natsClients } from "../../src/broker/clients.ts"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import { makeConditions } from "./conditions.ts"
import type { Parameters } from "./crashing-worker.ts"
import type { Installation } from "./engine.ts"

const program = join(inject("programs"), "crashing-worker.js")

export interface WorkerProcess {
  readonly pid: number
  /** Waits until the worker delivers for its share of the partitions. */
  readonly delivering: Effect.Effect<void>
  /** Waits until the worker has been killed. Dies if it exits in any other way. */
  readonly killed: Effect.Effect<void>
  /** Kills the worker and waits for its exit. */
  readonly kill9: Effect.Effect<void>
  /** Waits until the worker has logged a line that contains the text. */
  readonly says: (text: string) => Effect.Effect<void>
  /** Stops the worker's process: its connections stay open and it does nothing. */
  readonly freeze: Effect.Effect<void>
  /** Resumes the worker after it was frozen or froze itself. */
  readonly resume: Effect.Effect<void>
}

export interface WorkerProcessOptions extends Partial<Omit<Parameters, "crash">> {
  readonly crash?: Parameters["crash"] & { readonly step: FailpointName }
  /**
   * Maximum size of its old generation, MiB. The process dies if it exceeds it. (Default: Node's)
   */
  readonly heap?: number
}

/**
 * Starts a worker of an installation in a separate process. It is killed when the scope closes at
 * the latest.
 */
export const workerProcess = (
  {
    eventRoot,
    prefix,
    publishTimeoutMs,
    url
  }: Pick<Installation, "eventRoot" | "prefix" | "publishTimeoutMs" | "url">,
  { heap, ...options }: WorkerProcessOptions = {}
) =>
  Effect.acquireRelease(
    Effect.sync((): WorkerProcess => {
      const parameters: Parameters = {
        url,
        prefix,
        eventRoot,
        publishTimeoutMs,
        id: "crashing",
        roles: ["router", "deliver"],
        ...options
      }
      const limits = heap === undefined ? [] : [`--max-old-space-size=${heap}`]
      const child = spawn(process.execPath, [...limits, program, JSON.stringify(parameters)], {
        stdio: "pipe"
      })
      const said: Array<string> = []
      const conditions = makeConditions()
      const hear = (line: string) => {
        said.push(line)
        conditions.changed()
      }
      const delivering = new Promise<void>((resolve) => {
        createInterface(child.stdout).on("line", (line) => {
          if (line === "delivering") resolve()
          else hear(line)
        })
      })
      createInterface(child.stderr).on("line", hear)
      const killed = new Promise<void>((resolve, reject) => {
        child.once("close", (code, signal) => {
          if (signal === "SIGKILL") resolve()
          else reject(new Error(`the worker ended with ${code ?? signal}:\n${said.join("\n")}`))
        })
      })
      killed.catch(() => undefined)
      return {
        pid: child.pid ?? 0,
        delivering: Effect.promise(() => Promise.race([delivering, killed])),
        killed: Effect.promise(() => killed),
        kill9: Effect.promise(() => {
          child.kill("SIGKILL")
          return killed
        }),
        says: (text) => conditions.until(() => said.some((line) => line.includes(text))),
        freeze: Effect.sync(() => void child.kill("SIGSTOP")),
        resume: Effect.sync(() => void child.kill("SIGCONT"))
      }
    }),
    ({ kill9 }) => Effect.ignoreCause(kill9)
  )

/** Removes the leases and heartbeats of dead workers, instead of waiting until they expire. */
export const endLeases = Effect.gen(function* () {
  const { ask, bucket, names } = yield* natsClients
  const workers = yield* bucket(names.buckets.workers)
  yield* ask("end the leases", async () => {
    for await (const key of await workers.keys(["worker.>", "owner.>"])) await workers.purge(key)
  })
})

/**
 * Starts a worker that kills itself at a failpoint, waits for its exit, and lets another take over.
 *
 * @param begin runs as soon as the worker delivers: it attempts events that it then routes
 *   directly.
 */
export const crashAt = <E = never, R = never>(
  place: Installation,
  step: FailpointName,
  arrival = 1,
  options: WorkerProcessOptions = {},
  begin?: Effect.Effect<unknown, E, R>
) =>
  workerProcess(place, { ...options, crash: { step, arrival } }).pipe(
    Effect.tap(({ delivering }) =>
      begin === undefined ? Effect.void : Effect.andThen(delivering, begin)
    ),
    Effect.andThen(({ killed }) => killed),
    Effect.andThen(endLeases)
  )
