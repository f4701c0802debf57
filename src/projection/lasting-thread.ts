import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Worker } from "node:worker_threads"
import { Effect, Schema } from "effect"
import { timers } from "../time/timers.ts"

/** Pause before a thread that has ended is started anew, ms: doubled each time, up to the most. */
const firstPauseMs = 1_000
const mostPauseMs = 60_000

/** Returns when a thread is started anew, for people. */
export const pauseText = (pauseMs: number): string => `it is started again in ${pauseMs / 1_000} s`

/** Returns the seconds until a thread is started anew; undefined where it has been. */
export const secondsUntil = (startsAt: number): number | undefined => {
  const seconds = Math.ceil((startsAt - timers.monotonicMs()) / 1_000)
  return seconds > 0 ? seconds : undefined
}

interface LastingThread<Told> {
  readonly script: URL
  readonly data: unknown
  /** Takes what it says. */
  readonly told: (message: Told) => void
  /** It has ended of itself, and is started anew after a pause, ms. */
  readonly ended: (why: string, pauseMs: number) => void
  /** Most that its heap may take, MiB: beyond it, it ends. (Default: as Node sees fit) */
  readonly maxHeapMb?: number
  /** What to tell it at the end, so that it stops of itself, and how long that may take, ms. */
  readonly stop?: { readonly message: unknown; readonly withinMs: number }
}

/**
 * Returns the script of a thread. In a bundle it lies next to the script that has all modules.
 *
 * @param module the `import.meta.url` of a module in the same folder.
 */
export const siblingScript = (module: string, name: string): URL =>
  new URL(`./${name}${module.slice(module.lastIndexOf("."))}`, module)

/** Starts a thread, and ends it with the scope: after it had time to stop, where it is told to. */
const startThread = <Told>({
  data,
  maxHeapMb,
  script,
  stop
}: Pick<LastingThread<Told>, "data" | "maxHeapMb" | "script" | "stop">) =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new Worker(script, {
          workerData: data,
          // Older Nodes warn of node:sqlite, between lines of JSON.
          execArgv: ["--disable-warning=ExperimentalWarning"],
          resourceLimits: {
            maxYoungGenerationSizeMb: 16,
            ...(maxHeapMb === undefined ? {} : { maxOldGenerationSizeMb: maxHeapMb })
          }
        })
    ),
    (worker) =>
      Effect.gen(function* () {
        if (stop !== undefined && worker.threadId > 0) {
          const stopped = Effect.callback<void>((resume) => {
            worker.once("exit", () => resume(Effect.void))
            worker.on("message", ({ tells }: { readonly tells?: unknown }) => {
              if (tells === "stopped") resume(Effect.void)
            })
            worker.postMessage(stop.message)
          })
          yield* Effect.timeoutOption(stopped, stop.withinMs)
        }
        yield* Effect.promise(() => worker.terminate())
      })
  )

/** Waits until a thread has ended of itself. Returns why. */
const endOf = (worker: Worker) =>
  Effect.callback<string>((resume) => {
    let why = "it says nothing of why"
    worker.once("error", (error) => {
      why = error instanceof Error ? error.message : String(error)
    })
    worker.once("exit", () => resume(Effect.succeed(why)))
  })

/** A thread ended before it had said what it came to. */
export class ThreadEnded extends Schema.TaggedError<ThreadEnded>()("ThreadEnded", {
  why: Schema.String
}) {
  override get message() {
    return this.why
  }
}

/**
 * Runs a thread until it has said what it came to, and ends it. An interruption ends it as well.
 * Fails with ThreadEnded where it ends of itself, as for want of memory.
 *
 * @param told takes what it says; returns what it came to, once that is said.
 */
export const threadResult = <Told, A>(
  thread: Pick<LastingThread<Told>, "data" | "maxHeapMb" | "script">,
  told: (message: Told) => A | undefined
): Effect.Effect<A, ThreadEnded> =>
  Effect.scoped(
    Effect.gen(function* () {
      const worker = yield* startThread(thread)
      const result = Effect.callback<A>((resume) => {
        worker.on("message", (message: Told) => {
          const found = told(message)
          if (found !== undefined) resume(Effect.succeed(found))
        })
      })
      const ended = Effect.flatMap(endOf(worker), (why) => Effect.fail(new ThreadEnded({ why })))
      return yield* Effect.raceFirst(result, ended)
    })
  )

/**
 * Runs a thread until the scope ends. One that ends of itself, as for want of memory, is started
 * anew after a pause.
 *
 * @returns how to tell it something, which returns false while it does not run.
 */
export const lastingThread = Effect.fnUntraced(function* <Told>(options: LastingThread<Told>) {
  let running: Worker | undefined
  let pauseMs = firstPauseMs
  const once = Effect.gen(function* () {
    const worker = yield* startThread(options)
    const began = timers.monotonicMs()
    worker.on("message", options.told)
    running = worker
    const why = yield* endOf(worker)
    running = undefined
    if (timers.monotonicMs() - began > mostPauseMs) pauseMs = firstPauseMs
    options.ended(why, pauseMs)
  }).pipe(Effect.scoped)
  const pause = Effect.suspend(() => {
    const ms = pauseMs
    pauseMs = Math.min(2 * pauseMs, mostPauseMs)
    return Effect.sleep(ms)
  })
  const runs = Effect.forever(Effect.andThen(once, pause))
  yield* Effect.forkScoped(runs, { startImmediately: true })
  return (message: unknown): boolean => {
    running?.postMessage(message)
    return running !== undefined
  }
})

let collect: NodeJS.GCFunction | undefined

/**
 * Collects all garbage of this thread and gives its memory back: V8 keeps what a burst of work needed
 * for as long as there is little to do after it. Takes some 20 to 250 ms.
 */
export const collectGarbage = (): void => {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc")
    collect = runInNewContext("gc") as NodeJS.GCFunction
  }
  collect({ type: "major", execution: "sync", flavor: "last-resort" })
}
