import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/**
 * Sets V8's collector for a process that runs for long and is done with most things in some ms; to be
 * called before the engine runs. What each of the two gives is in docs/performance.md.
 *
 * All objects are allocated as young ones. V8 allocates a kind of object as old at once where most of
 * that kind outlived a collection of the young generation. At the start of a load that may be so, by
 * chance, and what a delivery consists of refers to one another: all of it then becomes old with its
 * first part, and a worker takes up to a third more CPU for as long as it lives.
 *
 * The old generation may double before it is collected. Left to itself, V8 lets it grow several
 * times over, and the worker's memory rises and falls by 100 MiB and more.
 */
export const setCollector = (): void => {
  setFlagsFromString("--no-allocation-site-pretenuring")
  setFlagsFromString("--heap-growing-percent=100")
}

/** By how much the old generation may grow, in bytes; less where that would more than double it. */
const growth = 40 * 1024 * 1024

/**
 * Gives back what only the start of the process needed. To read 100,000 endpoints makes V8's young
 * generation as large as it may be, and leaves gaps in the old one; without load it would keep both.
 * That takes 250 ms then, and 20 ms with few endpoints.
 *
 * With many of them the old generation may not double any more: it would have as much room for
 * garbage as they take, where a delivery needs no more of it than with few.
 */
export const giveBackMemory = (): void => {
  setFlagsFromString("--expose-gc")
  const collect: NodeJS.GCFunction = runInNewContext("gc")
  collect({ type: "major", execution: "sync", flavor: "last-resort" })
  const percent = Math.ceil((100 * growth) / getHeapStatistics().used_heap_size)
  if (percent >= 100) return
  setFlagsFromString(`--heap-growing-percent=${percent}`)
  // How far it may grow is decided as a collection ends.
  collect({ type: "major", execution: "sync" })
}
