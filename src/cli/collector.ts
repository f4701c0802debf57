import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/**
 * Has the process allocate all objects as young ones; to be called before the engine runs.
 *
 * V8 allocates a kind of object as old at once where most of that kind outlived a collection of the
 * young generation. At the start of a load that may be so, by chance, and what a delivery consists of
 * refers to one another: all of it then becomes old with its first part, though it is done with after
 * some ms, and a worker takes up to a third more CPU for as long as it lives (docs/performance.md).
 */
export const allocateYoung = (): void => setFlagsFromString("--no-allocation-site-pretenuring")

/**
 * Gives back what only the start of the process needed. To read 100,000 endpoints makes V8's young
 * generation as large as it may be, and leaves gaps in the old one; without load it would keep both.
 * That takes 130 ms then, 300 MiB become 200, and 20 ms with few endpoints (docs/performance.md).
 */
export const giveBackMemory = (): void => {
  setFlagsFromString("--expose-gc")
  const collect: NodeJS.GCFunction = runInNewContext("gc")
  collect({ type: "major", execution: "sync", flavor: "last-resort" })
}
