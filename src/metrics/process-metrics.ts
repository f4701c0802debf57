import { readdirSync } from "node:fs"
import { Effect } from "effect"
import { loopActiveMs, watchLoopDelay } from "../time/event-loop.ts"
import { timers } from "../time/timers.ts"
import { HistogramCells } from "./cells.ts"
import type { Family } from "./family.ts"
import { counter, gauge } from "./family.ts"

/** Delays of the event loop, ms: above 100 ms leases and time-outs begin to suffer. */
const delayMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000]

/** Number of open file descriptors; undefined where the system does not show them. */
const openFiles = (): number | undefined => {
  try {
    return readdirSync("/proc/self/fd").length
  } catch {
    return undefined
  }
}

/** When this process was started, ms since the epoch. */
export const processStartedAt = (): number => timers.wallMs() - process.uptime() * 1_000

/** Measures this process until the scope closes. Returns its metrics when called. */
export const watchProcess = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const delay = new HistogramCells({}, delayMs, 0.001)
      return { delay, timer: watchLoopDelay((ms) => delay.observe(ms)) }
    }),
    ({ timer }) => Effect.sync(() => timers.cancel(timer))
  ),
  ({ delay }) => {
    const startedAt = processStartedAt() / 1_000
    return (): ReadonlyArray<Family> => {
      const { system, user } = process.cpuUsage()
      const { heapUsed, rss } = process.memoryUsage()
      const files = openFiles()
      return [
        counter("process.cpu", "CPU time used.", (user + system) / 1e6, "s"),
        gauge("process.resident_memory", "Resident memory.", rss, "By"),
        gauge("process.heap_used", "Heap of the program that is in use.", heapUsed, "By"),
        gauge("process.start_time", "When the process started, since the epoch.", startedAt, "s"),
        ...(files === undefined
          ? []
          : [gauge("process.open_fds", "Open file descriptors.", files)]),
        counter(
          "petrel.event_loop.active",
          "Time in which the event loop worked; at 1 second a second the process is at its limit.",
          loopActiveMs() / 1_000,
          "s"
        ),
        {
          name: "petrel.event_loop.delay",
          help: "How much later than due a timer fires.",
          unit: "s",
          type: "histogram",
          samples: delay.samples(false)
        }
      ]
    }
  }
)
