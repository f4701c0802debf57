import { invalid } from "../domain/problem.ts"
import {
  deliveredNumber,
  endpointName,
  firstUnusualStatus,
  isUnusual,
  stateNumbers
} from "./columns.ts"
import { type AttemptQuery, type DeliveryQuery, type EventQuery, noStatus } from "./delivery-log.ts"
import { type Names, NumberedNames } from "./names-table.ts"

type Value = string | number

/** What a query asks of rows, in SQL. */
export interface Conditions {
  /** Joined by AND; without the range of positions. */
  readonly sql: ReadonlyArray<string>
  readonly values: ReadonlyArray<Value>
}

/** What a query asks of deliveries. */
export interface DeliveryConditions extends Conditions {
  /** What the name of the index of a table ends with; undefined for the order of the rows. */
  readonly index: string | undefined
  /** The range of event ids, if it is a search for the beginning of one. */
  readonly prefix: readonly [string, string] | undefined
}

/**
 * The most texts of one file that a search for a beginning looks for by their numbers. Where there are
 * more, of all tenants, each row's own text is looked at.
 */
const maxTexts = 500
/** Sorts after any continuation of a text. */
const last = "\u{10FFFF}"

/** Splits `invoice.*` into the range of texts that begin so; undefined if it is one text. */
const rangeOf = (text: string): readonly [string, string] | undefined =>
  text.endsWith("*") ? [text.slice(0, -1), `${text.slice(0, -1)}${last}`] : undefined

/** Writes `invoice.>`, as filters of endpoints have it, as `invoice.*`. */
const asBeginning = (type: string): string => type.replace(/>$/, "*")

/** A condition, and the values for its question marks. */
interface Conditional {
  readonly sql: string
  readonly values: ReadonlyArray<Value>
}

/** Collects conditions on the rows of a table, which stores shared texts in its own way. */
class ConditionList {
  readonly sql: Array<string> = []
  readonly values: Array<Value> = []
  /** False if no row can have what is asked for. */
  isPossible = true
  readonly #names: Names

  constructor(names: Names) {
    this.#names = names
  }

  add(condition: string, ...values: ReadonlyArray<Value>): void {
    this.sql.push(condition)
    this.values.push(...values)
  }

  /** The column has one of these numbers. */
  numbered(column: string, numbers: ReadonlyArray<Value>): void {
    if (numbers.length === 0) this.isPossible = false
    else this.add(`${column} IN (${numbers.map(() => "?").join(", ")})`, ...numbers)
  }

  /** The column has one of these texts. */
  named(column: string, texts: ReadonlyArray<string> | undefined): void {
    if (texts === undefined) return
    this.numbered(
      column,
      texts.flatMap((text) => this.#names.find(text) ?? [])
    )
  }

  /** The column has one of these texts, or one that begins as one that ends with `*`. */
  beginning(column: string, texts: ReadonlyArray<string> | undefined): void {
    if (texts === undefined) return
    const whole = texts.filter((text) => rangeOf(text) === undefined)
    const parts = texts.flatMap((text): Array<Conditional> => {
      const range = rangeOf(text)
      return range === undefined ? [] : [this.#within(column, range)]
    })
    const stored = whole.flatMap((text) => this.#names.find(text) ?? [])
    if (stored.length > 0)
      parts.push({
        sql: `${column} IN (${stored.map(() => "?").join(", ")})`,
        values: stored
      })
    if (parts.length === 0) this.isPossible = false
    else
      this.add(
        `(${parts.map(({ sql }) => sql).join(" OR ")})`,
        ...parts.flatMap(({ values }) => values)
      )
  }

  /** The status is one of these, or of a class of them such as `5xx`; `none`: there is no answer. */
  status(texts: ReadonlyArray<string> | undefined): void {
    if (texts === undefined) return
    const parts = texts.map((text) =>
      text === noStatus
        ? { sql: "status IS NULL OR error IS NOT NULL", values: [] }
        : { sql: "status BETWEEN ? AND ?", values: statusRange(text) }
    )
    this.add(
      `(${parts.map(({ sql }) => sql).join(" OR ")})`,
      ...parts.flatMap(({ values }) => values)
    )
  }

  /** The time is within these, ms since the epoch. */
  time(
    column: string,
    { since, until }: { readonly since?: number | undefined; readonly until?: number | undefined }
  ): void {
    if (since !== undefined) this.add(`${column} >= ?`, since)
    if (until !== undefined) this.add(`${column} <= ?`, until)
  }

  #within(column: string, [from, to]: readonly [string, string]): Conditional {
    const names = this.#names
    if (!(names instanceof NumberedNames))
      return { sql: `(${column} >= ? AND ${column} < ?)`, values: [from, to] }
    const numbers = names.numbersBetween(from, to, maxTexts + 1)
    if (numbers.length > maxTexts)
      return {
        sql: `EXISTS (SELECT 1 FROM names WHERE number = ${column} AND text >= ? AND text < ?)`,
        values: [from, to]
      }
    return {
      sql: `${column} IN (SELECT value FROM json_each(?))`,
      values: [JSON.stringify(numbers)]
    }
  }
}

/** The statuses that a text names: `404`, `5xx`. */
const statusRange = (text: string): readonly [number, number] =>
  text.endsWith("xx")
    ? [Number(text[0]) * 100, Number(text[0]) * 100 + 99]
    : [Number(text), Number(text)]

/** Adds whose rows are asked for. Returns by what of them the rows are found. @throws Invalid. */
const addOwner = (
  list: ConditionList,
  { endpoint, tenant }: Pick<DeliveryQuery, "endpoint" | "tenant">
): "endpoint" | "tenant" | undefined => {
  if (tenant === undefined) {
    if (endpoint !== undefined)
      throw invalid("endpoint", "needs `tenant`: endpoints are named within their tenant")
    return undefined
  }
  if (endpoint === undefined) {
    list.named("tenant", [tenant])
    return "tenant"
  }
  list.named(
    "endpoint",
    endpoint.map((id) => endpointName(tenant, id))
  )
  return "endpoint"
}

/** Adds which events are asked for. Returns the range of their ids, if it is one. */
const addEvent = (list: ConditionList, event: string | undefined) => {
  const events = event === undefined ? undefined : rangeOf(event)
  if (events !== undefined) list.add("event >= ? AND event < ?", ...events)
  else if (event !== undefined) list.add("event = ?", event)
  return events
}

// A success whose answer was not to be kept has no status.
const isRareStatus = (text: string): boolean =>
  text !== noStatus && statusRange(text)[0] >= firstUnusualStatus

/** Returns what a query asks of deliveries; undefined if none can have it. @throws Invalid. */
export const conditionsOf = (
  query: Omit<DeliveryQuery, "cursor" | "limit">,
  names: Names
): DeliveryConditions | undefined => {
  const { error, event, state, status, type } = query
  const list = new ConditionList(names)
  const owner = addOwner(list, query)
  const isFailed = error !== undefined || state?.every((one) => one !== "delivered")
  const isRare = isFailed || status?.every(isRareStatus) === true
  // Word for word what the indexes of what is unusual say, or one side of it.
  if (isFailed) list.add(`state <> ${deliveredNumber}`)
  else if (isRare) list.add(isUnusual)
  const prefix = addEvent(list, event)
  list.beginning("type", type?.map(asBeginning))
  if (state !== undefined)
    list.numbered(
      "state",
      state.map((one) => stateNumbers.indexOf(one))
    )
  list.status(status)
  list.named("error", error)
  list.time("at", query)
  if (!list.isPossible) return undefined
  return {
    sql: list.sql,
    values: list.values,
    prefix,
    index:
      event !== undefined && prefix === undefined
        ? "event"
        : isRare
          ? ["unusual", ...(owner === undefined ? [] : [owner])].join("_")
          : owner
  }
}

/** Returns what a query asks of the rows of attempts, and their index. @throws Invalid. */
export const attemptConditionsOf = (
  query: AttemptQuery,
  names: Names
): (Conditions & { readonly index: string | undefined }) | undefined => {
  const { error, event, outcome, status, type } = query
  const list = new ConditionList(names)
  const owner = addOwner(list, query)
  const prefix = addEvent(list, event)
  list.beginning("type", type?.map(asBeginning))
  if (outcome !== undefined) list.add("success = ?", outcome === "success" ? 1 : 0)
  list.status(status)
  // As the statistics count: an answer that was cut off is none, though its status had arrived.
  if (status?.includes(noStatus) === false) list.add("error IS NULL")
  list.named("error", error)
  list.time("at", query)
  if (!list.isPossible) return undefined
  const isEvent = event !== undefined && prefix === undefined
  return { sql: list.sql, values: list.values, index: isEvent ? "event" : owner }
}

/** Returns what a query asks of rows that tell of events. */
export const eventConditionsOf = (
  { channel, tenant, type, ...times }: EventQuery,
  names: Names
): Conditions | undefined => {
  const list = new ConditionList(names)
  if (tenant !== undefined) list.named("tenant", [tenant])
  list.beginning("type", type?.map(asBeginning))
  list.beginning("channel", channel)
  list.time("event_at", times)
  return list.isPossible ? { sql: list.sql, values: list.values } : undefined
}
