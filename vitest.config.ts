import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: "forks",
    maxWorkers: 3,
    // What a worker logs belongs to its test: it is shown where that fails.
    silent: "passed-only"
  }
})
