import { entryStates } from "../entry.ts"
import type { Percentiles, StoredCounts, Waiting } from "../store.ts"
import type { SqlDatabase, SqlValue } from "./sql.ts"

/** Counts what was received in a window of time. */
export const sqlCounts = async <Tx>(
  db: SqlDatabase<Tx>,
  table: string,
  source: string | undefined,
  sinceMs: number
): Promise<StoredCounts> => {
  const { nowMs } = db.dialect
  const from = `from ${table} where received_at >= ${nowMs} - ?${source === undefined ? "" : " and source = ?"}`
  const values: ReadonlyArray<SqlValue> = [sinceMs, ...(source === undefined ? [] : [source])]
  const groups = await db.rows(
    `select state, attempts, count(*) as events, sum(receipts - 1) as repeats,
       sum(conflicts) as conflicts ${from} group by state, attempts`,
    values
  )
  const sumOf = (column: string, state?: string) =>
    groups
      .filter((group) => state === undefined || group.state === state)
      .reduce((sum, group) => sum + Number(group[column]), 0)

  /** Two look-ups by position: exact, and the same in each database. */
  const percentiles = async (
    expression: string,
    condition: string
  ): Promise<Percentiles | undefined> => {
    const [counted] = await db.rows(`select count(*) as n ${from} and ${condition}`, values)
    const count = Number(counted?.n ?? 0)
    if (count === 0) return undefined
    const at = async (share: number) => {
      const offset = Math.min(count - 1, Math.floor(count * share))
      const [row] = await db.rows(
        `select ${expression} as ms ${from} and ${condition} order by ms limit 1 offset ${offset}`,
        values
      )
      return Number(row?.ms ?? 0)
    }
    return { p50: await at(0.5), p95: await at(0.95) }
  }

  const attempts: Record<number, number> = {}
  for (const group of groups)
    if (group.state === "done" || group.state === "dead") {
      const taken = Math.max(1, Number(group.attempts))
      attempts[taken] = (attempts[taken] ?? 0) + Number(group.events)
    }
  return {
    byState: Object.fromEntries(
      entryStates.map((state) => [state, sumOf("events", state)])
    ) as StoredCounts["byState"],
    repeats: sumOf("repeats"),
    conflicts: sumOf("conflicts"),
    attempts,
    timeToDone: await percentiles("finished_at - received_at", "state = 'done'"),
    queueDelay: await percentiles("started_at - received_at", "started_at is not null")
  }
}

/** Counts what waits, by source: one statement a state, each served by an index. */
export const sqlWaiting = async <Tx>(
  db: SqlDatabase<Tx>,
  table: string
): Promise<ReadonlyArray<Waiting>> => {
  const found = new Map<string, Waiting>()
  for (const state of ["received", "dead", "quarantined"] as const) {
    const rows = await db.rows(
      `select source, count(*) as events, ${db.dialect.nowMs} - min(received_at) as ms
       from ${table} where state = '${state}' group by source`
    )
    for (const row of rows) {
      const source = String(row.source)
      const nothing = { source, received: 0, dead: 0, quarantined: 0, oldestWaitsMs: 0 }
      found.set(source, {
        ...(found.get(source) ?? nothing),
        [state]: Number(row.events),
        ...(state === "received" && { oldestWaitsMs: Math.max(0, Number(row.ms)) })
      })
    }
  }
  return [...found.values()]
}
