import { readFileSync } from "node:fs"
import { isatty } from "node:tty"
import { Effect, type Exit, Fiber } from "effect"

const often = 250

/** Returns the command line of a process. Empty on systems other than Linux. */
const commandLine = (pid: number): ReadonlyArray<string> => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    return []
  }
}

/**
 * Calls `stop` when npm has been stopped. `npm start` and `npx` run a command in a shell and
 * forward signals to the shell only. The shell exits without signalling its child, and the worker
 * or the broker would keep running unnoticed.
 */
const onNpmShellGone = (stop: () => void): void => {
  const shell = process.ppid
  const [program = "", option] = commandLine(shell)
  if (process.env.npm_command === undefined || option !== "-c" || !/(^|\/)sh$/.test(program)) return
  const watch = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(watch)
    stop()
  }, often)
  watch.unref()
}

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP"
const numbers: Record<Signal, number> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }

/**
 * A terminal and a wrapper such as npx both send the same Ctrl-C. Signals within this time count as
 * one, ms.
 */
const onePress = 500

/**
 * Whether SIGHUP says that the terminal is gone which this process used. With nohup, or under a
 * supervisor, it uses none, and goes on. Whether nohup had SIGHUP ignored is not known: Node sets all
 * such signals back when it starts.
 */
const usesTerminal = (): boolean => [0, 1, 2].some((fd) => isatty(fd))

let servesUntilStopped = false

/**
 * Marks an effect that runs until it is stopped. A signal then ends it successfully (exit 0), after
 * its finalizers. Any other effect interrupted by a signal exits with 128 + the signal's number.
 */
export const untilStopped = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(effect, () =>
    Effect.sync(() => {
      servesUntilStopped = true
    })
  )

/**
 * Runs the program of this process. The first signal interrupts it and runs its finalizers. A
 * second signal ends the process at once.
 *
 * @param codeOf returns the exit code, and reports errors. `signal` is the exit code after an
 *   interruption by a signal.
 */
export const runMain = <A, E>(
  program: Effect.Effect<A, E>,
  codeOf: (exit: Exit.Exit<A, E>, signal: number) => number
): void => {
  const fiber = Effect.runFork(program)
  const keepAlive = setInterval(() => undefined, 2 ** 30)
  let asked: { readonly signal: Signal; readonly at: number } | undefined

  const onSignal = (signal: Signal) => {
    const now = performance.now()
    if (asked !== undefined) {
      if (now - asked.at > onePress) process.exit(128 + numbers[signal])
      return
    }
    asked = { signal, at: now }
    Effect.runFork(Fiber.interrupt(fiber))
  }
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, onSignal)
  process.on("SIGHUP", usesTerminal() ? onSignal : () => undefined)
  onNpmShellGone(() => onSignal("SIGTERM"))

  fiber.addObserver((exit) => {
    clearInterval(keepAlive)
    // An interruption without a signal is Ctrl-C at a prompt, which reads it as a key.
    const signal = servesUntilStopped ? 0 : 128 + numbers[asked?.signal ?? "SIGINT"]
    const code = codeOf(exit, signal)
    // Earlier output may still be in transit to a pipe.
    process.stdout.write("", () => process.exit(code))
  })
}
