import type { ExecFileException } from "node:child_process"
import { execFile } from "node:child_process"
import { createInterface } from "node:readline"
import { Effect, Schema } from "effect"

/**
 * A source failed to yield a nats-server. The message is a clause that fits into a longer sentence.
 */
export class ObtainFailed extends Schema.TaggedError<ObtainFailed>()("ObtainFailed", {
  message: Schema.String
}) {}

/** Receives one line of progress, without a line feed. */
export type ReportProgress = (line: string) => void

/** A source of the nats-server binary. */
export interface Source {
  readonly name: string
  /**
   * Fetches into `directory`, an empty temporary one, and returns the path of the binary; undefined
   * if this source has nothing for this kind of machine.
   */
  readonly obtain: (
    directory: string,
    progress: ReportProgress
  ) => Effect.Effect<string | undefined, ObtainFailed>
}

const whyItFailed = (error: ExecFileException, stderr: string, timeoutMs: number): string => {
  if (error.code === "ENOENT") return "there is no such program"
  if (error.code === "EACCES") return "it is not executable"
  if (error.killed) return `no end after ${timeoutMs / 1000} s`
  return stderr.trim().split("\n").at(-1) || error.message
}

/**
 * Runs a program and returns its stdout. An interruption kills the program. Fails with the last
 * line of its stderr, or if it takes longer than `timeoutMs`.
 */
export const run = (
  command: string,
  args: ReadonlyArray<string>,
  options: {
    readonly timeoutMs: number
    readonly cwd?: string
    readonly env?: NodeJS.ProcessEnv
    readonly onLine?: (line: string) => void
  }
): Effect.Effect<string, ObtainFailed> =>
  Effect.callback((resume, signal) => {
    const child = execFile(
      command,
      args,
      {
        cwd: options.cwd,
        env: options.env ?? process.env,
        timeout: options.timeoutMs,
        maxBuffer: 16 * 1024 * 1024,
        signal
      },
      (error, stdout, stderr) => {
        if (error === null) return resume(Effect.succeed(stdout))
        const reason = whyItFailed(error, stderr, options.timeoutMs)
        resume(Effect.fail(new ObtainFailed({ message: `${command}: ${reason}` })))
      }
    )
    if (options.onLine !== undefined && child.stdout !== null)
      createInterface(child.stdout).on("line", options.onLine)
  })
