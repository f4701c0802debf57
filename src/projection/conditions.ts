import { invalid } from "../domain/problem.ts"
import {
  deliveredNumber,
  endpointName,
  firstUnusualStatus,
  isUnusual,
  stateNumbers
} from "./columns.ts"
import type { DeliveryQuery } from "./delivery-log.ts"
import { type Names, NumberedNames } from "./names-table.ts"

export type Value = string | number

/** What a query asks of rows, in SQL. */
export interface Conditions {
  /** Joined by AND; without the range of positions. */
  readonly sql: ReadonlyArray<string>
  readonly values: ReadonlyArray<Value>
  /** What the name of the index of a table ends with; undefined for the order of the rows. */
  readonly index: string | undefined
  /** The range of event ids, if it is a search for the beginning of one. */
  readonly prefix: readonly [string, string] | undefined
}

/**
 * The most types of one file that a search for the beginning of a type looks for by their numbers.
 * Where there are more, of all tenants, each row's own type is looked at.
 */
const maxTypes = 500
/** Sorts after any continuation of a text. */
const last = "\u{10FFFF}"

/** Splits `invoice.*` into the range of texts that begin so; undefined if it is one text. */
const rangeOf = (text: string): readonly [string, string] | undefined =>
  text.endsWith("*") ? [text.slice(0, -1), `${text.slice(0, -1)}${last}`] : undefined

/** The condition that the type begins with a text. */
const typeWithin = (names: Names, [from, to]: readonly [string, string]) => {
  if (!(names instanceof NumberedNames))
    return { sql: "type >= ? AND type < ?", values: [from, to] }
  const numbers = names.numbersBetween(from, to, maxTypes + 1)
  if (numbers.length > maxTypes)
    return {
      sql: "EXISTS (SELECT 1 FROM names WHERE number = type AND text >= ? AND text < ?)",
      values: [from, to]
    }
  return { sql: "type IN (SELECT value FROM json_each(?))", values: [JSON.stringify(numbers)] }
}

/**
 * Returns what a query asks of the rows of a table, which stores shared texts in its own way;
 * undefined if no row can have it. @throws Invalid.
 */
export const conditionsOf = (query: DeliveryQuery, names: Names): Conditions | undefined => {
  const { endpoint, error, event, since, state, status, tenant, type, until } = query
  if (endpoint !== undefined && tenant === undefined)
    throw invalid("endpoint", "needs `tenant`: endpoints are named within their tenant")
  const sql: Array<string> = []
  const values: Array<Value> = []
  let isKnown = true
  const add = (condition: string, ...more: ReadonlyArray<Value>) => {
    sql.push(condition)
    values.push(...more)
  }
  const named = (column: string, text: string) => {
    const stored = names.find(text)
    if (stored === undefined) isKnown = false
    else add(`${column} = ?`, stored)
  }
  const isFailed = error !== undefined || (state !== undefined && state !== "delivered")
  const isRare = isFailed || (status !== undefined && status >= firstUnusualStatus)
  if (endpoint !== undefined && tenant !== undefined)
    named("endpoint", endpointName(tenant, endpoint))
  else if (tenant !== undefined) named("tenant", tenant)
  // Word for word what the indexes of what is unusual say, or one side of it.
  if (isFailed) add(`state <> ${deliveredNumber}`)
  else if (isRare) add(isUnusual)
  const events = event === undefined ? undefined : rangeOf(event)
  if (events !== undefined) add("event >= ? AND event < ?", ...events)
  else if (event !== undefined) add("event = ?", event)
  const types = type === undefined ? undefined : rangeOf(type)
  if (types !== undefined) {
    const within = typeWithin(names, types)
    add(within.sql, ...within.values)
  } else if (type !== undefined) named("type", type)
  if (state !== undefined) add("state = ?", stateNumbers.indexOf(state))
  if (status !== undefined) add("status = ?", status)
  if (error !== undefined) named("error", error)
  if (since !== undefined) add("at >= ?", since)
  if (until !== undefined) add("at <= ?", until)
  if (!isKnown) return undefined
  const owner = endpoint !== undefined ? "endpoint" : tenant !== undefined ? "tenant" : undefined
  return {
    sql,
    values,
    prefix: events,
    index:
      event !== undefined && events === undefined
        ? "event"
        : isRare
          ? ["unusual", ...(owner === undefined ? [] : [owner])].join("_")
          : owner
  }
}
