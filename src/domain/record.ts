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

/** Fields of which each may be absent. */
type Present<A> = { readonly [K in keyof A]?: Exclude<A[K], undefined> }

/** Returns the fields that have a value: an optional key is absent where there is none. */
export const present = <A extends object>(fields: A): Present<A> =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined)
  ) as Present<A>
