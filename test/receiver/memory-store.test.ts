import { memoryStore } from "../../src/receiver/stores/memory.ts"
import { conformance } from "./conformance.ts"

conformance("The inbox in memory", undefined, async () => {
  const counters = new Map<string, number>()
  return {
    store: memoryStore(),
    add: async (_, name) => {
      counters.set(name, (counters.get(name) ?? 0) + 1)
    },
    countOf: async (name) => counters.get(name) ?? 0,
    close: async () => undefined
  }
})
