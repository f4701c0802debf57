import type { Reporter, TestModule } from "vitest/node"

/** Number of files that are named. A run of no more files names none. */
const named = 5

const secondsOf = (module: TestModule): number => module.diagnostic().duration / 1_000

/** Names the files whose tests took longest, at the end of a run. */
export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>) {
    if (modules.length <= named) return
    const slowest = modules.toSorted((a, b) => secondsOf(b) - secondsOf(a)).slice(0, named)
    console.info("Slowest files:")
    for (const module of slowest)
      console.info(`  ${secondsOf(module).toFixed(1)} s ${module.relativeModuleId}`)
  }
}
