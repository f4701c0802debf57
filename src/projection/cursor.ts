import { createHash } from "node:crypto"
import { invalid } from "../domain/problem.ts"
import type { DeliveryQuery } from "./delivery-log.ts"

/** A short name of what is asked for, without the page. */
const nameOf = ({ cursor: _, limit: __, ...asked }: DeliveryQuery): string =>
  createHash("sha256")
    .update(JSON.stringify(Object.entries(asked).sort(([a], [b]) => (a < b ? -1 : 1))))
    .digest("base64url")
    .slice(0, 8)

/** Returns the cursor of the rows of a query below a position. */
export const writeCursor = (query: DeliveryQuery, position: number): string =>
  `${position.toString(36)}-${nameOf(query)}`

/** Returns the position of the query's cursor; undefined without one. @throws Invalid. */
export const readCursor = (query: DeliveryQuery): number | undefined => {
  const { cursor } = query
  if (cursor === undefined) return undefined
  const [, digits, name] = /^([0-9a-z]{1,11})-([A-Za-z0-9_-]{8})$/.exec(cursor) ?? []
  const position = Number.parseInt(digits ?? "", 36)
  if (!Number.isSafeInteger(position) || position <= 0)
    throw invalid("cursor", "must be the `cursor` of an earlier page")
  if (name !== nameOf(query))
    throw invalid("cursor", "is of another query: give the same filters as for the page before")
  return position
}
