import { createHash } from "node:crypto"
import { invalid } from "../domain/problem.ts"
import type { Direction } from "./keyset-search.ts"

/** A query that is answered page by page, newest first. */
export interface PagedQuery {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

/** Where a page begins, which that key is no part of. */
interface PagePlace {
  readonly direction: Direction
  readonly key: number
}

/** A short name of what is asked for, without the page. */
const nameOf = (list: string, { cursor: _, limit: __, ...asked }: PagedQuery): string =>
  createHash("sha256")
    .update(JSON.stringify([list, ...Object.entries(asked).sort(([a], [b]) => (a < b ? -1 : 1))]))
    .digest("base64url")
    .slice(0, 8)

const signs = { older: "", newer: "~" } as const

/** Returns the cursor of a page of a list. */
export const writeCursor = (
  list: string,
  query: PagedQuery,
  { direction, key }: PagePlace
): string => `${signs[direction]}${key.toString(36)}-${nameOf(list, query)}`

/** Returns where the page of the query's cursor begins; undefined without one. @throws Invalid. */
export const readCursor = (list: string, query: PagedQuery): PagePlace | undefined => {
  const { cursor } = query
  if (cursor === undefined) return undefined
  const [, sign, digits, name] = /^(~?)([0-9a-z]{1,11})-([A-Za-z0-9_-]{8})$/.exec(cursor) ?? []
  const key = Number.parseInt(digits ?? "", 36)
  if (!Number.isSafeInteger(key)) throw invalid("cursor", "must be the `cursor` of an earlier page")
  if (name !== nameOf(list, query))
    throw invalid("cursor", "is of another query: give the same filters as for the page before")
  return { direction: sign === "" ? "older" : "newer", key }
}
