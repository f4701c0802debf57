import { configDefaults, defineConfig } from "vitest/config"
import { SecondAttempts } from "./test/kit/second-attempts.ts"
import { SlowestFiles } from "./test/kit/slowest-files.ts"

/** Stories of some 20 s and more each; `npm run test:long` tells them, too. */
const long = "test/**/*.long.test.ts"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: process.env.PETREL_TEST_LONG === undefined ? [long] : configDefaults.exclude,
    globalSetup: "test/kit/bundle.ts",
    setupFiles: ["test/kit/cpu-time.ts", "test/kit/bundled-threads.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    // What tests share is the process, and with it what was loaded; each makes its own of the rest.
    isolate: false,
    // MiB of each half of V8's young generation: what a story makes lives for some ms, and with more
    // room it is collected before it has to be copied.
    execArgv: ["--max-semi-space-size=64"],
    maxWorkers: 4,
    // The stories have real brokers and processes on a machine that others may use: one of several
    // thousand that fails once does not fail the run, but is named at its end.
    retry: 1,
    reporters: ["default", new SecondAttempts(), new SlowestFiles()],
    // What a worker logs belongs to its test: it is shown where that fails.
    silent: "passed-only"
  }
})
