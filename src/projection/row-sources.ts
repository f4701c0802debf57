import { attemptColumns } from "./attempt-table.ts"
import { columns, deliveredNumber, stateNumbers } from "./columns.ts"
import type { Conditions, DeliveryConditions } from "./conditions.ts"
import type { EventRow } from "./delivery-log.ts"
import type { FoundRow, Source } from "./keyset-search.ts"
import type { RowTable } from "./row-table.ts"

/** Among more events that begin alike it is quicker to look at all rows. */
const fewEvents = 2_000

/** How to read the deliveries of a table: by the index that suits. */
export const deliverySource = (
  table: RowTable,
  { index, prefix, sql, values }: DeliveryConditions
): Source => {
  const { name } = table
  const isPrefix = prefix !== undefined && hasFew(table, prefix)
  const by = isPrefix ? "event" : index
  return {
    ...{ table, name, key: "position", select: columns.join(", "), where: sql, values },
    from: by === undefined ? `${name} NOT INDEXED` : `${name} INDEXED BY ${name}_${by}`,
    isNarrow: by === "event"
  }
}

/** How to read the attempts of a file that have rows of their own. */
export const attemptSource = (
  table: RowTable,
  { index, sql, values }: Conditions & { readonly index: string | undefined }
): Source => ({
  ...{ table, name: "attempt", key: "position", select: attemptColumns, where: sql, values },
  from: index === undefined ? "attempt NOT INDEXED" : `attempt INDEXED BY attempt_${index}`,
  isNarrow: index === "event"
})

const hasFew = (table: RowTable, range: readonly [string, string]): boolean => {
  const { name } = table
  const count = table
    .prepare(
      `SELECT count(*) AS rows FROM (SELECT 1 FROM ${name} WHERE event >= ? AND event < ? LIMIT ${fewEvents})`
    )
    .get(...range)
  return Number(count?.rows) < fewEvents
}

const counts = stateNumbers.map((_, number) => `sum(state = ${number}) AS state${number}`)
const shared = ["event", "tenant", "type", "channel"].map((name) => `max(${name}) AS ${name}`)
const identity = ["event_seq", "event_at"]

/**
 * How to read the events that the rows of a table tell of.
 *
 * @param name of deliveries, or of events that no endpoint wants.
 * @param isOfTenant whether the conditions name a tenant.
 */
export const eventSource = (
  table: RowTable,
  name: string,
  { sql, values }: Conditions,
  isOfTenant: boolean
): Source => ({
  ...{ table, name, key: "event_seq", groupBy: "event_at", where: sql, values },
  from: `${name} INDEXED BY ${name}_${isOfTenant ? "tenant_event" : "event_seq"}`,
  select: [...identity, ...shared, ...(name === "unwanted" ? [] : counts)].join(", "),
  isNarrow: false
})

const numberOf = (name: (typeof stateNumbers)[number]): number => stateNumbers.indexOf(name)

/** Returns an event, from what each table has of it. */
export const eventRowOf = ({ key, parts }: FoundRow): EventRow => {
  const rounds = (number: number) =>
    parts.reduce((sum, { row }) => sum + Number(row[`state${number}`] ?? 0), 0)
  const text = (column: string): string | null => {
    for (const { row, source } of parts) {
      const stored = row[column]
      if (typeof stored === "string" || typeof stored === "number")
        return source.table.names.textOf(stored)
    }
    return null
  }
  const [first] = parts
  return {
    id: String(first?.row.event),
    tenant: text("tenant") ?? "",
    seq: key,
    at: Number(first?.row.event_at),
    type: text("type"),
    channel: text("channel"),
    rounds: {
      waiting: rounds(numberOf("waiting")),
      delivered: rounds(deliveredNumber),
      deadLettered: rounds(numberOf("dead-lettered")),
      discarded: rounds(numberOf("discarded")),
      skipped: rounds(numberOf("skipped"))
    }
  }
}
