import type { StatementSync } from "node:sqlite"
import { invalid } from "../domain/problem.ts"
import { answerClasses, Summary } from "../history/fold/summary.ts"
import { addTotals, beginningOf, noTotals, periods, type Totals } from "../history/fold/totals.ts"
import type { ListedSum, LoggedSum, LoggedSums, SumsQuery } from "./log-sums.ts"
import {
  otherNames,
  type RollupKind,
  type RollupRow,
  rollupKinds,
  summaryIn,
  totalColumns,
  totalsIn
} from "./rollups.ts"

/** Hours that are summed up at most: 400 days. Each is looked up by itself. */
const maxHours = 9_600
/** Sums that a list has at most: those of every tenant and hour may be more. */
const maxSums = 10_000
/**
 * Rows that are summed up by endpoint or type at most, which takes 0.1 to 0.2 s: who asks keeps the thread
 * that answers everybody's questions for as long.
 */
const maxRows = 50_000
const defaultLimit = 50

/** What prepares statements of main.db. */
interface Preparing {
  readonly prepare: (sql: string) => StatementSync
}

const loggedSum = ({ answers, spread, totals }: Summary): LoggedSum => ({
  totals,
  answers: Object.fromEntries(
    answerClasses.flatMap((name, index) => {
      const times = answers[index] ?? 0
      return times === 0 ? [] : [[name, times]]
    })
  ),
  attemptCounts: spread.attempts,
  toSuccess: spread.toSuccess ?? null,
  latency: spread.latency ?? null
})

/** The hours of a query that the log has, oldest first. */
const hoursOf = (
  { since, until }: SumsQuery,
  oldest: number,
  newest: number
): ReadonlyArray<number> => {
  const first = Math.max(beginningOf(since, "hour"), oldest)
  const count = Math.floor((Math.min(until, newest) - first) / periods.hour) + 1
  if (count > maxHours) throw invalid("since", `is more than ${maxHours} hours before \`until\``)
  return Array.from({ length: Math.max(0, count) }, (_, index) => first + index * periods.hour)
}

/** Returns the rows of an hour, in the order of tenants and names. */
const rowsOf = (
  db: Preparing,
  hour: number,
  kind: RollupKind,
  tenant: string | undefined,
  name: string | undefined
): ReadonlyArray<RollupRow> => {
  const values: Array<number | string> = [hour, rollupKinds[kind]]
  let sql = "SELECT * FROM rollup WHERE hour = ? AND kind = ?"
  for (const [column, value] of [
    ["tenant", tenant],
    ["name", name]
  ] as const)
    if (value !== undefined) {
      sql += ` AND ${column} = ?`
      values.push(value)
    }
  return db.prepare(sql).all(...values)
}

/** Sums up by period and tenant. */
const byPeriod = (db: Preparing, query: SumsQuery, hours: ReadonlyArray<number>) => {
  const { by, endpoint, tenant } = query
  const period = by === "day" ? "day" : "hour"
  const kind = endpoint === undefined ? "tenant" : "endpoint"
  const whole = new Summary()
  const sums: Array<ListedSum> = []
  let now = new Map<string, Summary>()
  let begins = 0
  const close = () => {
    for (const [tenant, summary] of [...now].sort(([a], [b]) => (a < b ? -1 : 1)))
      sums.push({ begins, tenant, ...loggedSum(summary) })
    if (sums.length > maxSums)
      throw invalid("since", `gives more than ${maxSums} sums: ask for a shorter time or a tenant`)
    now = new Map()
  }
  for (const hour of hours) {
    const next = beginningOf(hour, period)
    if (next !== begins) close()
    begins = next
    for (const row of rowsOf(db, hour, kind, tenant, endpoint)) {
      const summary = summaryIn(row)
      whole.add(summary)
      const known = now.get(String(row.tenant))
      if (known === undefined) now.set(String(row.tenant), summary)
      else known.add(summary)
    }
  }
  close()
  return { sums, whole: loggedSum(whole) }
}

/** The order of {@link Groups}: what goes wrong most comes first. */
const worstFirst = "sum(dead_lettered) DESC, sum(attempts_failed) DESC, sum(delivered) DESC"

/** Sums up by endpoint or type: totals in SQL, and what has no columns of those listed only. */
const byName = (
  db: Preparing,
  { by, limit = defaultLimit, tenant }: SumsQuery,
  hours: ReadonlyArray<number>
) => {
  const kind = by === "type" ? "type" : "endpoint"
  // A type is the same of all tenants, an endpoint is not. With the sign, SQLite reads the rows of
  // the hours once, and does not look each name up in each hour.
  const label = kind === "type" ? "+name" : "tenant || '/' || name"
  const where = `hour IN (SELECT value FROM json_each(?)) AND kind = ?${tenant === undefined ? "" : " AND tenant = ?"}`
  const all = JSON.stringify(hours)
  const of = [all, rollupKinds[kind], ...(tenant === undefined ? [] : [tenant])]
  const { count } = db
    .prepare(
      `SELECT count(*) AS count FROM (SELECT 1 FROM rollup WHERE ${where} LIMIT ${maxRows + 1})`
    )
    .get(...of) ?? { count: 0 }
  if (Number(count) > maxRows)
    throw invalid(
      "since",
      `needs more than ${maxRows} sums of hours: ask for a shorter time${tenant === undefined ? ", or for one tenant" : ""}`
    )
  const totals = totalColumns.map((column) => `sum(${column}) AS ${column}`).join(", ")
  const groups = db
    .prepare(
      `SELECT ${label} AS label, min(name) AS name, ${totals} FROM rollup WHERE ${where}
       GROUP BY label ORDER BY ${worstFirst}, label`
    )
    .all(...of)
  const whole = new Summary()
  for (const hour of hours)
    for (const row of rowsOf(db, hour, "tenant", tenant, undefined)) whole.add(summaryIn(row))
  const rest = new Summary()
  rest.add(whole)
  const named = groups.filter(({ name }) => name !== otherNames)
  const listed = new Map(
    named.slice(0, limit).map(({ label }) => [String(label), new Summary()] as const)
  )
  const rows = db.prepare(
    `SELECT ${label} AS label, * FROM rollup
     WHERE ${where} AND ${label} IN (SELECT value FROM json_each(?))`
  )
  for (const row of rows.all(...of, JSON.stringify([...listed.keys()])))
    listed.get(String(row.label))?.add(summaryIn(row))
  const sums = [...listed].map(([name, summary]): ListedSum => {
    rest.subtractSpread(summary)
    return { name, ...loggedSum(summary) }
  })
  const left = [...named.slice(limit), ...groups.filter(({ name }) => name === otherNames)]
  if (left.length > 0) {
    rest.totals = left.map(totalsIn).reduce((a: Totals, b) => addTotals(a, b), noTotals)
    sums.push({ name: null, others: left.length, ...loggedSum(rest) })
  }
  return { sums, whole: loggedSum(whole) }
}

/** Sums up hours. @throws Invalid where these would be too many. */
export const readSums = (db: Preparing, query: SumsQuery): LoggedSums => {
  const kept = db.prepare("SELECT min(hour) AS oldest, max(hour) AS newest FROM rollup").get()
  const { newest, oldest } = kept ?? {}
  if (query.endpoint !== undefined && query.tenant === undefined)
    throw invalid("endpoint", "needs `tenant`: endpoints are named within their tenant")
  const hours = oldest == null ? [] : hoursOf(query, Number(oldest), Number(newest))
  const found =
    query.by === "hour" || query.by === "day"
      ? byPeriod(db, query, hours)
      : byName(db, query, hours)
  return { ...found, oldestHour: oldest == null ? null : Number(oldest) }
}
