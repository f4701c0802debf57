import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { makeConditions } from "../kit/conditions.ts"
import { program } from "./command-line.ts"

/** A `petrel` command in a process of its own. */
export interface Running {
  readonly pid: number
  /** Lines on stdout so far. */
  readonly out: ReadonlyArray<string>
  /** Lines on stderr so far. */
  readonly err: ReadonlyArray<string>
  /** Waits until what was said holds; dies with all that was said if the command ends before. */
  readonly until: (
    holds: (out: ReadonlyArray<string>, err: ReadonlyArray<string>) => boolean
  ) => Effect.Effect<void>
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits for its end and gives the exit code, 128 for a signal that ended it. */
  readonly ended: Effect.Effect<number>
}

/** Starts a command; killed at the latest when the scope closes. */
export const start = (...args: ReadonlyArray<string>) => startWith([], ...args)

/** Starts a command with options of Node; killed at the latest when the scope closes. */
export const startWith = (options: ReadonlyArray<string>, ...args: ReadonlyArray<string>) =>
  startNode([...options, program, ...args])

/**
 * Starts Node; killed at the latest when the scope closes.
 *
 * @param cwd its working directory. (Default: that of this process)
 * @param variables of its environment, beside those of this process. Undefined leaves one out.
 * @param within the command that runs it, with its arguments. (Default: none)
 */
export const startNode = (
  args: ReadonlyArray<string>,
  cwd?: string,
  variables: NodeJS.ProcessEnv = {},
  within: ReadonlyArray<string> = []
) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const { NATS_URL: _, ...env } = process.env
        const [command = "", ...rest] = [...within, process.execPath, ...args]
        const child = spawn(command, rest, {
          ...{ stdio: "pipe", cwd },
          env: { ...env, ...variables }
        })
        child.stdin.end()
        const conditions = makeConditions()
        const out: Array<string> = []
        const err: Array<string> = []
        let code: number | undefined
        createInterface(child.stdout).on("line", (line) => {
          out.push(line)
          conditions.changed()
        })
        createInterface(child.stderr).on("line", (line) => {
          err.push(line)
          conditions.changed()
        })
        child.once("close", (exit) => {
          code = exit ?? 128
          conditions.changed()
        })
        const ended = Effect.map(
          conditions.until(() => code !== undefined),
          () => code ?? 128
        )
        const running: Running = {
          pid: child.pid ?? 0,
          out,
          err,
          until: (holds) =>
            Effect.gen(function* () {
              yield* conditions.until(() => code !== undefined || holds(out, err))
              if (!holds(out, err))
                throw new Error(`ended with ${code}:\n${[...out, ...err].join("\n")}`)
            }),
          signal: (signal) => Effect.sync(() => child.kill(signal)),
          ended
        }
        return { child, running }
      }),
      ({ child, running }) =>
        Effect.andThen(
          Effect.sync(() => child.kill("SIGKILL")),
          running.ended
        )
    ),
    ({ running }) => running
  )

/** Runs a command to its end in a process of its own. */
export const runProcess = (...args: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ended, err, out } = yield* start(...args)
      return { code: yield* ended, out, err }
    })
  )
