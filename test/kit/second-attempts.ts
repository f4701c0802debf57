import { inspect } from "node:util"
import type { Reporter, TestModule } from "vitest/node"

/**
 * Names the tests that passed at their second attempt only, with what failed the first, at the end
 * of a run: each is a defect of the engine or of the test.
 */
export class SecondAttempts implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>) {
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        if (test.diagnostic()?.flaky !== true) continue
        console.warn(`Passed at its second attempt only: ${module.relativeModuleId}: ${test.name}`)
        // A story may fail with a value that is no Error.
        for (const error of test.result().errors ?? [])
          console.warn(error.stack ?? error.message ?? inspect(error))
      }
    }
  }
}
