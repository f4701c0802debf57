import { valueAt } from "../body.ts"
import { itemsOfArray, itemsUnder } from "../json-items.ts"
import type { ApiAnswer } from "./listing.ts"

/** An item of a list, and its bytes as the provider wrote them. */
export interface Item {
  readonly json: unknown
  readonly bytes: Uint8Array
}

/**
 * Returns the items of a list, or of the one under a name; undefined where there is none.
 *
 * @param name of an array in the answer, which is an object then.
 */
export const itemsOf = (
  { body, json }: Pick<ApiAnswer, "body" | "json">,
  name?: string
): ReadonlyArray<Item> | undefined => {
  const list = name === undefined ? json : valueAt(json, name)
  if (!Array.isArray(list)) return undefined
  const bytes = name === undefined ? itemsOfArray(body) : itemsUnder(body, name)
  return list.map((one, place) => ({ json: one, bytes: bytes[place] ?? new Uint8Array() }))
}

/**
 * Returns the query of a link to the next page. Only that is used of it: credentials go to no other
 * host, and to no other path.
 */
export const queryOfLink = (link: string | undefined): string | undefined =>
  link !== undefined && URL.canParse(link, "https://api")
    ? new URL(link, "https://api").search.slice(1)
    : undefined

/** Returns the link to the next page of a header `link`: `<https://…>; rel="next"`. */
export const nextInHeader = (header: string | undefined): string | undefined =>
  (header ?? "")
    .split(/,\s*(?=<)/)
    .map((part) => /^\s*<([^>]*)>.*;\s*rel="?next"?/.exec(part)?.[1])
    .find((link) => link !== undefined)

/** By how much an event may be out of the order of its time in a list, ms. */
const disorderMs = 60 * 60_000

/** True where what follows a page that is newest first is older than what is asked for. */
export const isOlder = (last: number | undefined, since: number): boolean =>
  last !== undefined && last < since - disorderMs
