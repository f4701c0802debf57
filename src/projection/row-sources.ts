import { attemptColumns } from "./attempt-table.ts"
import { columns } from "./columns.ts"
import type { Conditions, DeliveryConditions } from "./conditions.ts"
import type { Source } from "./keyset-search.ts"
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
