import type { Reporter, TestModule } from "vitest/node"

/** Number of files that are named. A run of no more files names none. */
const named = 5

const secondsOf = (module: TestModule): number => (module.meta().cpuMs ?? 0) / 1_000

/** Names the files whose tests took most CPU time, at the end of a run. */
export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>) {
    if (modules.length <= named) return
    const slowest = modules.toSorted((a, b) => secondsOf(b) - secondsOf(a)).slice(0, named)
    const all = modules.reduce((sum, module) => sum + secondsOf(module), 0)
    console.info(`Files that took most of ${all.toFixed(0)} s of CPU:`)
    for (const module of slowest)
      console.info(`  ${secondsOf(module).toFixed(1)} s ${module.relativeModuleId}`)
  }
}
