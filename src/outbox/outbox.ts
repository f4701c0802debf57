/**
 * `petrel/outbox`: stores events in the transaction that changes what they tell of. `petrel outbox`
 * publishes them once it has committed. No dependency: transactions are those of the program's own
 * `pg` or `postgres`.
 */

import { type OutboxEvent, type OutboxRow, rowOf, maxBodyBytes as usualBytes } from "./event-row.ts"
import { readTable, type TableName, tableExpected, usualTable } from "./table-name.ts"
import { type Run, runIn, type Transaction } from "./transaction.ts"

export { maxBodyBytes, type OutboxEvent } from "./event-row.ts"
export type { PgTransaction, PostgresTransaction, Transaction } from "./transaction.ts"

export interface EnqueueOptions {
  /** (Default: petrel_outbox) */
  readonly table?: string | undefined
  /** Largest body, bytes, where the broker takes less or more than usual. (Default: 972,800) */
  readonly maxBodyBytes?: number | undefined
}

const columns = "(tenant, event_id, type, content_type, body, traceparent, tracestate)" as const
/** A statement may have 65,535 parameters. */
const maxRows = 1_000

const insert = async (run: Run, { quoted }: TableName, rows: ReadonlyArray<OutboxRow>) => {
  let at = 0
  const values = rows.map(
    () => `($${++at}, $${++at}, $${++at}, $${++at}, $${++at}, $${++at}, $${++at})`
  )
  const { count } = await run(
    `insert into ${quoted} ${columns} values ${values.join(", ")} on conflict do nothing`,
    rows.flatMap(({ body, contentType, id, tenant, traceparent, tracestate, type }) => [
      ...[tenant, id, type, contentType, body],
      ...[traceparent ?? null, tracestate ?? null]
    ])
  )
  return count
}

/** Fails if another event has the row's id. */
const checkSame = async (run: Run, { quoted }: TableName, row: OutboxRow) => {
  const { rows } = await run(
    `select 1 from ${quoted} where tenant = $1 and event_id = $2 and type = $3 and body = $4`,
    [row.tenant, row.id, row.type, row.body]
  )
  if (rows.length === 0)
    throw new Error(
      `the id ${JSON.stringify(row.id)} of ${row.tenant} is taken by another event: choose another id`
    )
}

/**
 * Enqueues events: as {@link enqueue}, with one statement for each thousand.
 *
 * @returns their ids, in order.
 */
export const enqueueAll = async (
  tx: Transaction,
  events: ReadonlyArray<OutboxEvent>,
  options: EnqueueOptions = {}
): Promise<ReadonlyArray<string>> => {
  const table = readTable(options.table ?? usualTable)
  if (table === undefined) throw new TypeError(`table ${tableExpected}`)
  const run = runIn(tx)
  // All are checked before any is stored.
  const rows = events.map((event) => rowOf(event, options.maxBodyBytes ?? usualBytes))
  for (let from = 0; from < rows.length; from += maxRows) {
    const some = rows.slice(from, from + maxRows)
    if ((await insert(run, table, some)) === some.length) continue
    for (const [index, row] of some.entries())
      if (events[from + index]?.id !== undefined) await checkSame(run, table, row)
  }
  return rows.map(({ id }) => id)
}

/**
 * Enqueues an event in the caller's transaction: it is published if, and only if, that commits. An
 * id that the tenant has enqueued before does nothing, if it is the same event.
 *
 * @param tx the transaction: a client of `pg` after `begin`, or the `tx` of `sql.begin`.
 * @returns the event's id.
 * @throws TypeError with one sentence if it could never be published, or if `tx` is no transaction;
 *   Error if another event has its id; else what the database answers.
 */
export const enqueue = async (
  tx: Transaction,
  event: OutboxEvent,
  options: EnqueueOptions = {}
): Promise<string> => {
  const [id = ""] = await enqueueAll(tx, [event], options)
  return id
}
