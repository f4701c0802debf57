import { readFileSync } from "node:fs"
import { afterAll } from "vitest"

declare module "vitest" {
  interface TaskMeta {
    /** Of a file: CPU time of its tests, and of the processes that they started, ms. */
    cpuMs?: number
  }
}

/** Linux counts in hundredths of a second. */
const tickMs = 10
/** Fields of /proc/self/stat after the name, from `state` on: own time, and that of ended children. */
const [firstField, lastField] = [11, 14]

/** CPU time of this process so far, ms: on Linux with that of its children that have ended. */
const spentMs = (): number => {
  if (process.platform !== "linux") {
    const { system, user } = process.cpuUsage()
    return (system + user) / 1_000
  }
  const [, fields = ""] = readFileSync("/proc/self/stat", "utf8").split(") ")
  const ticks = fields
    .split(" ")
    .slice(firstField, lastField + 1)
    .map(Number)
  return tickMs * ticks.reduce((sum, one) => sum + one, 0)
}

const before = spentMs()

// Registered before the hooks of the file, and so run after them: its brokers have ended.
// biome-ignore lint/correctness/noEmptyPattern: Vitest reads the parameter as a list of fixtures.
afterAll(({}, { meta }) => {
  meta.cpuMs = spentMs() - before
})
