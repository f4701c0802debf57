import { Effect, type Exit, Fiber } from "effect"
import { onNpmShellGone } from "./npm-shell.ts"

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP"
const numbers: Record<Signal, number> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }

/** A terminal and a wrapper such as npx both send the same Ctrl-C: this close together they are one. */
const onePress = 500

let servesUntilStopped = false

/**
 * For what runs until it is told to stop: a signal is then how it ends well (exit 0), after its
 * finalizers. Anything else that a signal interrupts ends with 128 + the signal's number.
 */
export const untilStopped = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(effect, () =>
    Effect.sync(() => {
      servesUntilStopped = true
    })
  )

/**
 * Runs the program of this process. The first signal interrupts it, so that finalizers run; a
 * second one ends the process at once.
 *
 * @param codeOf the exit code, and the place to say what went wrong. `signal` is the code to end
 *   with where a signal interrupted it.
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
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal)
  onNpmShellGone(() => onSignal("SIGTERM"))

  fiber.addObserver((exit) => {
    clearInterval(keepAlive)
    // Interrupted without a signal: Ctrl-C at a question, which takes it as a key.
    const signal = servesUntilStopped ? 0 : 128 + numbers[asked?.signal ?? "SIGINT"]
    const code = codeOf(exit, signal)
    // What was written before may still be on its way into a pipe.
    process.stdout.write("", () => process.exit(code))
  })
}
