import { Schema } from "effect"

/**
 * Checks all keys of a record. The same check on the key schema would silently drop the keys that
 * fail it.
 */
export const everyKey = (problem: (key: string) => string | undefined) =>
  Schema.makeFilter((record: Readonly<Record<string, unknown>>) => {
    for (const key of Object.keys(record)) {
      const found = problem(key)
      if (found !== undefined) return `${JSON.stringify(key)} ${found}`
    }
    return undefined
  })
