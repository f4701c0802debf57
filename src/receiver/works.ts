import type { InboxEvent } from "./inbox-event.ts"
import { checkOptions, type ProcessOptions } from "./settings.ts"

/** The application's function for events of a type. It gets the transaction in which the event is marked done. */
export type Work<Tx> = (tx: Tx, event: InboxEvent) => unknown

export interface RegisteredWork<Tx> {
  readonly pattern: string
  readonly mode: "once" | "process"
  readonly run: Work<Tx>
  readonly options: Required<ProcessOptions>
}

const hourMs = 3_600_000

/** A second, then four times as long each, to six hours: eleven attempts take some 18 hours. */
export const defaultBackoffMs = (attempts: number): number =>
  Math.min(6 * hourMs, 1_000 * 4 ** (attempts - 1))

/** Why work is aborted that has not ended in time. */
export const tookTooLong = (ms: number): Error => new Error(`the work took longer than ${ms} ms`)

const defaults: Required<ProcessOptions> = {
  attempts: 11,
  backoffMs: defaultBackoffMs,
  withinMs: 300_000
}

/** No sender waits longer than this. */
const onceWithinMs = 30_000

const matcher = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .split("*")
      .map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, "\\$&"))
      .join(".*")}$`,
    "su"
  )

/** The works of a receiver, by the types that they are for. */
export interface Works<Tx> {
  /** @throws TypeError for a pattern that has a work already. */
  readonly add: (
    pattern: string,
    mode: "once" | "process",
    run: Work<Tx>,
    options?: ProcessOptions
  ) => void
  /** Returns the work of a type: that of the type itself, else of the longest pattern that fits. */
  readonly find: (type: string) => RegisteredWork<Tx> | undefined
}

export const makeWorks = <Tx>(): Works<Tx> => {
  const exact = new Map<string, RegisteredWork<Tx>>()
  const patterns: Array<{ readonly matches: RegExp; readonly work: RegisteredWork<Tx> }> = []
  return {
    add: (pattern, mode, run, options = {}) => {
      if (typeof pattern !== "string" || pattern === "")
        throw new TypeError("the type is missing: name one, such as invoice.paid or invoice.*")
      if (typeof run !== "function")
        throw new TypeError(`the work of ${pattern} must be a function (tx, event) => …`)
      checkOptions(mode, `${mode}(${JSON.stringify(pattern)})`, options)
      const { attempts = defaults.attempts, backoffMs = defaults.backoffMs } = options
      const { withinMs = mode === "once" ? onceWithinMs : defaults.withinMs } = options
      for (const [name, value] of Object.entries({ attempts, withinMs }))
        if (!(value > 0))
          throw new TypeError(`${name} of ${pattern} must be a number above 0, and is ${value}`)
      const work = { pattern, mode, run, options: { attempts, backoffMs, withinMs } }
      if (exact.has(pattern) || patterns.some((one) => one.work.pattern === pattern))
        throw new TypeError(`${pattern} has a work already`)
      if (!pattern.includes("*")) {
        exact.set(pattern, work)
        return
      }
      patterns.push({ matches: matcher(pattern), work })
      patterns.sort((a, b) => b.work.pattern.length - a.work.pattern.length)
    },
    find: (type) => exact.get(type) ?? patterns.find(({ matches }) => matches.test(type))?.work
  }
}
