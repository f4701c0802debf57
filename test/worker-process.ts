import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { inject } from "vitest"
import { Broker } from "../src/broker/connection.ts"
import type { FailpointName } from "../src/broker/failpoint.ts"
import { makeConditions } from "./conditions.ts"
import type { Parameters } from "./crashing-worker.ts"
import type { Installation } from "./engine.ts"

const program = join(inject("programs"), "crashing-worker.js")
const compiled = join(import.meta.dirname, "../node_modules/.cache/petrel-tests")

export interface WorkerProcess {
  readonly pid: number
  /** Waits until it delivers its share. */
  readonly delivering: Effect.Effect<void>
  /** Waits until it has been killed; dies if it ended in any other way. */
  readonly killed: Effect.Effect<void>
  /** Kills it without warning and waits for its end. */
  readonly kill9: Effect.Effect<void>
  /** Waits until it has logged a line with this in it. */
  readonly says: (text: string) => Effect.Effect<void>
  /** Stops it where it is: its connections stay open and it does nothing. */
  readonly freeze: Effect.Effect<void>
  /** Lets it go on after it was frozen, or froze itself. */
  readonly resume: Effect.Effect<void>
}

export interface WorkerProcessOptions extends Partial<Omit<Parameters, "crash">> {
  readonly crash?: Parameters["crash"] & { readonly step: FailpointName }
  /** What its heap of old objects may grow to at most, MiB: beyond it dies. (Default: Node's) */
  readonly heap?: number
}

/** A worker of an installation in a process of its own; killed at the latest when the scope closes. */
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
        stdio: "pipe",
        env: { ...process.env, NODE_COMPILE_CACHE: compiled }
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

/** Ends all that dead workers left of themselves now, instead of waiting until it ends by itself. */
export const endLeases = Effect.gen(function* () {
  const { ask, bucket, names } = yield* Broker
  const workers = yield* bucket(names.buckets.workers)
  yield* ask("end the leases", async () => {
    for await (const key of await workers.keys(["worker.>", "owner.>"])) await workers.purge(key)
  })
})

/**
 * A worker that kills itself at a step: waits until it has, and lets another take over.
 *
 * @param begin done as soon as it delivers: what it routes then, it attempts straight from the event.
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
