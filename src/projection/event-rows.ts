import { deliveredNumber, stateNumbers } from "./columns.ts"
import type { Conditions } from "./conditions.ts"
import type { EventRow } from "./delivery-log.ts"
import type { FoundRow, Source } from "./keyset-search.ts"
import type { RowTable } from "./row-table.ts"

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
