import { readdirSync } from "node:fs"
import { configDefaults, defineConfig } from "vitest/config"
import { SecondAttempts } from "./test/kit/second-attempts.ts"
import { SlowestFiles } from "./test/kit/slowest-files.ts"

/** Stories of some 20 s and more each; `npm run test:long` tells them, too. */
const long = "test/**/*.long.test.ts"

/** The stories that `npm test` tells: one of each promise. */
const short = [
  ...["delivery", "retry", "circuit", "backlog", "lanes", "endpoints", "redelivery", "replay"],
  ...["crash-broker", "kill", "stopping", "audit-plans", "audit-sabotage"],
  ...["api-publishing", "intake", "gateway", "reconcile-petrel"]
].map((name) => `${name}.test.ts`)

const stories = readdirSync("test/scenarios")
const gone = short.filter((name) => !stories.includes(name))
if (gone.length > 0) throw new Error(`test/scenarios has no ${gone.join(", no ")}`)

/** What only `npm run test:all` runs: the other stories, and what else starts most processes. */
const notShort = [
  ...stories.filter((name) => !short.includes(name)).map((name) => `test/scenarios/${name}`),
  "test/{build,examples,ui}/**",
  "test/cli/commands/{dead,dev}/**",
  "test/cli/commands/{console,doors,replay,traces}.test.ts",
  "test/cli/json-times.test.ts",
  "test/operations/repartition/**"
]

const { PETREL_TEST_LONG, PETREL_TEST_SHORT } = process.env

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [
      ...configDefaults.exclude,
      ...(PETREL_TEST_LONG === undefined ? [long] : []),
      ...(PETREL_TEST_SHORT === undefined ? [] : notShort)
    ],
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
