import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { collectGarbage } from "../projection/collect-garbage.ts"

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
 * With many endpoints the old generation may no longer double: the room for garbage would be as
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
