import type { Entry } from "../entry.ts"
import { placesFor, type SqlDatabase, type SqlDialect, type SqlSession } from "./sql.ts"
import { entryColumns, entryOf } from "./sql-rows.ts"

/*
 * Which entries are worked on next. Of a subject only the oldest open one is, and the others must not be passed over
 * again at each claim: a claim that meets them puts their time off, and whoever ends the one before them wakes the
 * next. An entry that was not visible to either of them, because its own transaction had not committed, waits for
 * this time at most.
 */
const putOffMs = 5_000

/** How many entries are looked at for each that is wanted. */
const lookedAt = 10

/** Selects entries whose time has come, each with whether it is the oldest open one of its subject. */
const dueSelection = (
  { forUpdate, nowMs }: SqlDialect,
  table: string,
  sources: number,
  limit: number
): string =>
  `select i.id, i.next_at, case when i.subject is null or not exists (
       select 1 from ${table} e where e.source = i.source and e.subject = i.subject
         and e.state = 'received' and e.id < i.id)
     then 1 else 0 end as is_first
   from ${table} i
   where i.state = 'received' and i.next_at <= ${nowMs} and i.source in (${placesFor(sources)})
   order by i.next_at, i.id limit ${Math.max(50, limit * lookedAt)} ${forUpdate}`

const columns: ReadonlyArray<string> = [...entryColumns, "body"]

/** Takes entries with one statement, where the database can change rows in a `with`. */
const claimAtOnce = async (
  dialect: SqlDialect,
  session: SqlSession,
  table: string,
  { leaseMs, limit, sources }: Claim
): Promise<ReadonlyArray<Entry>> => {
  const { nowMs } = dialect
  const rows = await session.rows(
    `with due as materialized (${dueSelection(dialect, table, sources.length, limit)}),
       first as materialized (
         select id from due where is_first = 1 order by next_at, id limit ${limit}),
       behind as (
         update ${table} b set next_at = ${nowMs} + ${putOffMs} from due
         where b.id = due.id and due.is_first = 0)
     update ${table} c set attempts = c.attempts + 1, next_at = ${nowMs} + ?,
       started_at = coalesce(c.started_at, ${nowMs})
     from first where c.id = first.id
     returning ${columns.map((column) => `c.${column}`).join(", ")}`,
    [...sources, leaseMs]
  )
  return rows.map(entryOf)
}

/** Takes entries statement by statement, in the session of a transaction. */
const claimInSteps = async (
  dialect: SqlDialect,
  session: SqlSession,
  table: string,
  { leaseMs, limit, sources }: Claim
): Promise<ReadonlyArray<Entry>> => {
  const { nowMs } = dialect
  const due = await session.rows(dueSelection(dialect, table, sources.length, limit), sources)
  const idsWhere = (isFirst: boolean) =>
    due.flatMap(({ id, is_first }) => ((Number(is_first) === 1) === isFirst ? [String(id)] : []))
  const [first, behind] = [idsWhere(true).slice(0, limit), idsWhere(false)]
  if (behind.length > 0)
    await session.run(
      `update ${table} set next_at = ${nowMs} + ${putOffMs} where id in (${placesFor(behind.length)})`,
      behind
    )
  if (first.length === 0) return []
  const places = placesFor(first.length)
  await session.run(
    `update ${table} set attempts = attempts + 1, next_at = ${nowMs} + ?,
       started_at = coalesce(started_at, ${nowMs}) where id in (${places})`,
    [leaseMs, ...first]
  )
  const rows = await session.rows(
    `select ${columns.join(", ")} from ${table} where id in (${places})`,
    first
  )
  return rows.map(entryOf)
}

interface Claim {
  readonly sources: ReadonlyArray<string>
  readonly limit: number
  readonly leaseMs: number
}

/** Takes entries, the oldest first. */
export const claimEntries = async <Tx>(
  db: SqlDatabase<Tx>,
  table: string,
  claim: Claim
): Promise<ReadonlyArray<Entry>> => {
  const { dialect } = db
  const claimed = dialect.changesInWith
    ? await claimAtOnce(dialect, db, table, claim)
    : await db.transaction((_, session) => claimInSteps(dialect, session, table, claim))
  return [...claimed].sort((a, b) => Number(a.id) - Number(b.id))
}

/** Wakes the entry behind one of its subject that has ended, which a claim may have put off. */
export const wakeNext = async <Tx>(
  { dialect }: SqlDatabase<Tx>,
  session: SqlSession,
  table: string,
  { source, subject }: Pick<Entry, "source" | "subject">
): Promise<void> => {
  if (subject === undefined) return
  const [next] = await session.rows(
    `select min(id) as id from ${table} where source = ? and subject = ? and state = 'received'`,
    [source, subject]
  )
  if (next?.id === null || next?.id === undefined) return
  // Also where it is due: a claim that is about to put it off is waited for.
  await session.run(
    `update ${table} set next_at = ${dialect.nowMs} where id = ? and state = 'received'`,
    [String(next.id)]
  )
}
