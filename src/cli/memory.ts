import { availableParallelism } from "node:os"
import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { collectGarbage } from "../projection/lasting-thread.ts"

/*
 * Bounds memory that is not in use, V8's young generation and what malloc keeps of buffers that are
 * free again, and the threads of V8. All are read once, when a process starts: so the process begins
 * anew, with flags and environment, in its own place.
 */

/** Flags of V8 that a console is started with. */
const flags = {
  /** Most that each half of the young generation of its main thread takes, MiB. */
  "--max-semi-space-size": 4,
  /**
   * Threads that help to collect garbage: one for each other core. By default there are 4, and each
   * collection waits until all of them have had their turn on the cores.
   */
  "--v8-pool-size": Math.min(4, Math.max(1, availableParallelism() - 1))
}

/**
 * For glibc: buffers of 128 KiB and more go back to the system once they are free. By default that
 * threshold grows to 32 MiB with the first large bodies that are freed, and each thread may keep an
 * arena of its own. Other systems ignore these names.
 */
const malloc = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "131072",
  MALLOC_TRIM_THRESHOLD_: "262144"
}

/**
 * Starts this process anew with these bounds if it is a console: at 32 MiB a half, young garbage is a
 * sixth of a console's memory, and bodies of an attack left 60 to 80 MiB with malloc. A flag that
 * somebody chose stays. Does nothing where whoever started the process talks to it, and where the
 * system cannot replace a process, such as Windows.
 */
export const boundProcess = (): void => {
  const { argv, env, execArgv, execPath } = process
  if (!argv.includes("console", 2) || process.connected) return
  const given = [...execArgv, env.NODE_OPTIONS ?? ""]
  const missing = Object.entries(flags).flatMap(([flag, value]) =>
    given.some((text) => text.includes(flag)) ? [] : [`${flag}=${value}`]
  )
  if (missing.length === 0) return
  try {
    const started = [execPath, ...missing, ...execArgv, ...argv.slice(1)]
    process.execve?.(execPath, started, { ...malloc, ...env })
  } catch {
    // It runs as well without: it takes more memory.
  }
}

/**
 * Sets V8's garbage collector for a long-running process whose objects mostly live for some ms.
 * Call it before the engine runs. docs/internals/performance.md states the effect of each flag.
 *
 * All objects are allocated in the young generation. By default, V8 allocates a kind of object
 * directly in the old generation if most of that kind survived a collection of the young
 * generation. This may happen by chance at the start of a load. The objects of a delivery reference
 * each other, so all of them become old with the first one, and a worker takes up to a third more
 * CPU for its lifetime.
 *
 * The old generation grows by a share before it is collected. By default, V8 lets it grow several
 * times over, and the worker's memory varies by 100 MiB and more.
 *
 * @param percent that share. (Default: it may double)
 */
export const setCollector = (percent = 100): void => {
  setFlagsFromString("--no-allocation-site-pretenuring")
  growBy(percent)
}

let growthPercent = 100

const growBy = (percent: number): void => {
  growthPercent = percent
  setFlagsFromString(`--heap-growing-percent=${percent}`)
}

/**
 * Maximum growth of the old generation before a collection, in bytes; less if that would be more
 * than the share that {@link setCollector} set.
 */
const growth = 40 * 1024 * 1024

/** Used memory above which the start of the process has grown the heap, bytes: 40,000 endpoints. */
const grownAbove = 128 * 1024 * 1024
/** Interval at which a process with a small heap looks whether it has nothing to do, ms. */
const lookEveryMs = 5_000
/** Share of a core below which it has nothing to do. */
const atRest = 0.05

/**
 * Releases the memory that only the start of the process needed. Reading 100,000 endpoints grows
 * V8's young generation to its maximum and fragments the old one, and without load V8 keeps both.
 * The call then takes 250 ms. With few endpoints it waits until there is nothing to do: the
 * collection takes all cores for a moment, where other workers deliver.
 *
 * With many endpoints the old generation may no longer double: the space for garbage would be as
 * large as the endpoints, while deliveries need no more of it than with few endpoints.
 */
export const giveBackMemory = (): void => {
  if (getHeapStatistics().used_heap_size > grownAbove) {
    collectAll()
    return
  }
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > atRest) return
    clearInterval(timer)
    collectAll()
  }, lookEveryMs)
  timer.unref()
}

const collectAll = (): void => {
  collectGarbage()
  const percent = Math.ceil((100 * growth) / getHeapStatistics().used_heap_size)
  if (percent >= growthPercent) return
  growBy(percent)
  // V8 computes the growth limit at the end of a collection.
  collectGarbage()
}
