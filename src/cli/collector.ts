import { setFlagsFromString } from "node:v8"

/**
 * Has the process allocate all objects as young ones; to be called before the engine runs.
 *
 * V8 allocates a kind of object as old at once where most of that kind outlived a collection of the
 * young generation. At the start of a load that may be so, by chance, and what a delivery consists of
 * refers to one another: all of it then becomes old with its first part, though it is done with after
 * some ms, and a worker takes up to a third more CPU for as long as it lives (docs/performance.md).
 */
export const allocateYoung = (): void => setFlagsFromString("--no-allocation-site-pretenuring")
