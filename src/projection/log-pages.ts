import { createHash } from "node:crypto"
import { invalid } from "../domain/problem.ts"
import type { PageEnds } from "./delivery-log.ts"
import { defaultPageRows } from "./delivery-log.ts"
import type { Direction, FoundRow, KeyRange } from "./keyset-search.ts"
import { KeysetSearch } from "./keyset-search.ts"

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
  if (!Number.isSafeInteger(key))
    throw invalid("cursor", "must be `next` or `previous` of a page of this list")
  if (name !== nameOf(list, query))
    throw invalid("cursor", "is of another query: give the same filters as for the page before")
  return { direction: sign === "" ? "older" : "newer", key }
}

/** What a list is made of. */
interface PagedList<Row> {
  /** Its name in cursors. */
  readonly name: string
  /** Where its rows are. */
  readonly range: KeyRange
  /** How many keys a fact takes. */
  readonly keysPerFact: number
  /** Searches its tables, in the order that is best for the direction of the search. */
  readonly search: (search: KeysetSearch, isOlder: boolean) => void
  readonly rowsOf: (found: FoundRow) => ReadonlyArray<Row>
  /** When what has a key was stored at the latest, ms since the epoch. */
  readonly timeAt: (key: number) => number
}

/** Returns a page of a list. @throws Invalid for the cursor of another query. */
export const pageOf = <Row>(
  query: PagedQuery,
  { keysPerFact, name, range, rowsOf, search, timeAt }: PagedList<Row>
): { readonly rows: ReadonlyArray<Row>; readonly ends: PageEnds } => {
  const { limit = defaultPageRows } = query
  const place = readCursor(name, query)
  const isOlder = place?.direction !== "newer"
  const asked =
    place === undefined
      ? range
      : isOlder
        ? { from: range.from, below: Math.min(range.below, place.key) }
        : { from: Math.max(range.from, place.key + 1), below: range.below }
  const searching = new KeysetSearch(isOlder ? "older" : "newer", asked, limit, keysPerFact)
  search(searching, isOlder)
  const { isFull, rows, searched } = searching.found
  const ordered = isOlder ? rows : rows.toReversed()
  const older = (key: number) => writeCursor(name, query, { direction: "older", key })
  const newer = (key: number) => writeCursor(name, query, { direction: "newer", key })
  const [first, last] = [ordered.at(0), ordered.at(-1)]
  const isCut = isOlder ? searched.from > asked.from : searched.below < asked.below
  const ends: PageEnds = isOlder
    ? {
        searchedUntil: isCut && !isFull ? timeAt(searched.from) : null,
        cursor:
          isFull && last !== undefined ? older(last.key) : isCut ? older(searched.from) : null,
        previous: place === undefined ? null : newer(first?.key ?? asked.below - 1)
      }
    : {
        searchedUntil: isCut && !isFull ? timeAt(searched.below) : null,
        cursor: older(last?.key ?? asked.from),
        previous:
          isFull && first !== undefined
            ? newer(first.key)
            : isCut
              ? newer(searched.below - 1)
              : null
      }
  return { rows: ordered.flatMap(rowsOf), ends }
}
