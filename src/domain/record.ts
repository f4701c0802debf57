import { Schema } from "effect"

/**
 * A check of all keys of a record. As the schema of its keys the same check would leave out, without
 * a word, what does not pass it.
 */
export const everyKey = (problem: (key: string) => string | undefined) =>
  Schema.makeFilter((record: Readonly<Record<string, unknown>>) => {
    for (const key of Object.keys(record)) {
      const found = problem(key)
      if (found !== undefined) return `${JSON.stringify(key)} ${found}`
    }
    return undefined
  })
