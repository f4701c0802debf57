import { unlessAborted, within } from "../machine.ts"
import { type Store, StoreUnavailable } from "../store.ts"
import {
  buffered,
  codeOf,
  connectionCodes,
  insertReturning,
  insertUnlessThere,
  numbered,
  type SqlDatabase,
  type SqlDialect,
  type SqlRow,
  type SqlSession,
  type SqlTables,
  type SqlTrouble,
  sqlTables
} from "./sql.ts"
import { sqlStore } from "./sql-store.ts"

/** What the store uses of a client of `pg`. */
export interface PgClient {
  // biome-ignore lint/suspicious/noExplicitAny: the client has several signatures
  query(text: string, values?: Array<any>): Promise<any>
}

/** What the store uses of a pool of `pg`. */
export interface PgPool {
  connect(): Promise<
    PgClient & {
      release(error?: Error | boolean): void
      on?(event: "error", listener: (error: Error) => void): unknown
      off?(event: "error", listener: (error: Error) => void): unknown
    }
  >
}

/** What the store uses of `postgres`. */
export interface PostgresJs {
  // biome-ignore lint/suspicious/noExplicitAny: a pending query is a promise of its rows
  unsafe(text: string, values?: Array<any>): PromiseLike<any>
  // biome-ignore lint/suspicious/noExplicitAny: the transaction is the caller's own type
  begin(options: string, work: (sql: any) => Promise<any>): Promise<any>
}

// biome-ignore lint/suspicious/noExplicitAny: the clients' signatures are compared, not called
type Whatever = any

/** The client of a transaction: of `pg` a client of the pool, of `postgres` its `sql`. */
export type PostgresTx<C> = C extends {
  connect: { (): Promise<infer Client>; (...rest: Array<Whatever>): Whatever }
}
  ? Client
  : C extends { begin(options: string, work: (sql: infer Sql) => Whatever): Whatever }
    ? Sql
    : never

export interface SqlStoreOptions {
  /** The inbox's table. Others have its name and an ending. (Default: petrel_inbox) */
  readonly table?: string
  /** How long a connection of the pool is waited for, in ms. (Default: 2000) */
  readonly connectMs?: number
}

const migrations = ({ inbox, versions }: SqlTables): ReadonlyArray<ReadonlyArray<string>> => [
  [
    `create table ${inbox} (
      id bigint generated always as identity primary key,
      source text not null,
      event_key text not null,
      type text,
      subject text,
      version bigint,
      state text not null,
      attempts int not null default 0,
      next_at bigint not null,
      headers text not null,
      content_type text not null,
      body bytea,
      body_hash text not null,
      receipts int not null default 1,
      conflicts int not null default 0,
      happened_at bigint,
      received_at bigint not null,
      started_at bigint,
      finished_at bigint,
      expires_at bigint not null,
      error text,
      unique (source, event_key)
    )`,
    `create index ${indexName(inbox, "due")} on ${inbox} (next_at, id) where state = 'received'`,
    `create index ${indexName(inbox, "order")} on ${inbox} (source, subject, id) where state = 'received' and subject is not null`,
    `create index ${indexName(inbox, "kept")} on ${inbox} (state, id) where state in ('dead', 'quarantined')`,
    `create index ${indexName(inbox, "expiry")} on ${inbox} (expires_at) where state in ('done', 'stale', 'discarded')`,
    `create table ${versions} (
      source text not null,
      subject text not null,
      version bigint not null,
      expires_at bigint not null,
      primary key (source, subject)
    )`,
    `create index ${indexName(versions, "expiry")} on ${versions} (expires_at)`
  ]
]

/** An index is in its table's schema: its name has none. */
const indexName = (table: string, ending: string): string => `${table.split(".").at(-1)}_${ending}`

const troubleOf = (error: unknown): SqlTrouble | undefined => {
  if (error instanceof StoreUnavailable) return "unavailable"
  const code = codeOf(error)
  if (code === "40001" || code === "40P01") return "conflict"
  if (code === "55P03") return "locked"
  if (code === "42P01" || code === "42703") return "not-migrated"
  // 08: connection; 53: resources; 57P: shutdown; 25006: a replica, for now.
  if (/^(08|53|57P)/.test(code) || code === "25006" || connectionCodes.has(code))
    return "unavailable"
  if (/^CONNECT(ION)?_/.test(code)) return "unavailable"
  return error instanceof Error &&
    /connection terminated|timeout exceeded when trying to connect|client has encountered a connection error/i.test(
      error.message
    )
    ? "unavailable"
    : undefined
}

const epochMs = (clock: string): string => `(extract(epoch from ${clock}) * 1000)::bigint`

export const postgresDialect: SqlDialect = {
  name: "PostgreSQL",
  // now() is the beginning of the transaction, and so serves indexes.
  nowMs: epochMs("now()"),
  clockMs: epochMs("clock_timestamp()"),
  forUpdate: "for update skip locked",
  changesInWith: true,
  migrations,
  migrationLock: { take: "select pg_advisory_xact_lock(hashtext('petrel_inbox'))" },
  insert: insertReturning,
  insertIgnore: insertUnlessThere,
  deleteSome: (table, where, limit) =>
    `delete from ${table} where ctid = any(array(
       select ctid from ${table} where ${where} order by expires_at limit ${limit} for update skip locked))`,
  troubleOf
}

/** What begins a transaction: READ COMMITTED, in which a repeat waits for the first receipt's commit. */
const begin = "isolation level read committed"

const lockTimeout = (lockMs: number | undefined): string =>
  lockMs === undefined ? "" : `set local lock_timeout = ${lockMs}`

const pgSession = (client: PgClient): SqlSession => ({
  rows: async (sql, values = []) => (await client.query(numbered(sql), buffered(values))).rows,
  run: async (sql, values = []) =>
    (await client.query(numbered(sql), buffered(values))).rowCount ?? 0
})

/** A client of the pool in use, and what became of its connection. */
interface Borrowed {
  readonly client: PgClient
  broken: Error | undefined
}

/** Uses a client of the pool, and gives it back; one whose connection is broken is not used again. */
const borrow = async <A>(
  pool: PgPool,
  connectMs: number,
  use: (borrowed: Borrowed) => Promise<A>
): Promise<A> => {
  const late = () =>
    new StoreUnavailable(`PostgreSQL: no connection of the pool was free for ${connectMs} ms`)
  const client = await within(connectMs, pool.connect(), late, (one) => one.release())
  const borrowed: Borrowed = { client, broken: undefined }
  // A client in use tells of its broken connection by an event, which would end the process.
  const onError = (error: Error) => {
    borrowed.broken = error
  }
  client.on?.("error", onError)
  try {
    return await use(borrowed)
  } finally {
    client.off?.("error", onError)
    client.release(borrowed.broken)
  }
}

const pgDatabase = (pool: PgPool, connectMs: number): SqlDatabase<PgClient> => ({
  dialect: postgresDialect,
  rows: (sql, values) =>
    borrow(pool, connectMs, ({ client }) => pgSession(client).rows(sql, values)),
  run: (sql, values) => borrow(pool, connectMs, ({ client }) => pgSession(client).run(sql, values)),
  transaction: (work, { lockMs, signal } = {}) =>
    borrow(pool, connectMs, async (borrowed) => {
      const { client } = borrowed
      try {
        await client.query(`begin ${begin};${lockTimeout(lockMs)}`)
        const result = await unlessAborted(work(client, pgSession(client)), signal)
        await client.query("commit")
        return result
      } catch (error) {
        if (signal?.aborted === true) borrowed.broken = new Error("the work took too long")
        else
          await client.query("rollback").catch((failed: Error) => {
            borrowed.broken = failed
          })
        throw error
      }
    })
})

interface PostgresJsRows extends ReadonlyArray<SqlRow> {
  readonly count: number
}

const postgresJsSession = (sql: Pick<PostgresJs, "unsafe">): SqlSession => ({
  rows: async (text, values = []) => {
    const rows: PostgresJsRows = await sql.unsafe(numbered(text), buffered(values))
    return rows
  },
  run: async (text, values = []) => {
    const rows: PostgresJsRows = await sql.unsafe(numbered(text), buffered(values))
    return rows.count
  }
})

const postgresJsDatabase = (sql: PostgresJs): SqlDatabase<PostgresJs> => ({
  dialect: postgresDialect,
  ...postgresJsSession(sql),
  transaction: async <A>(
    work: (tx: PostgresJs, session: SqlSession) => Promise<A>,
    { lockMs, signal }: { readonly lockMs?: number; readonly signal?: AbortSignal } = {}
  ): Promise<A> =>
    sql.begin(begin, async (tx: PostgresJs) => {
      if (lockMs !== undefined) await tx.unsafe(lockTimeout(lockMs))
      return unlessAborted(work(tx, postgresJsSession(tx)), signal)
    })
})

/**
 * Keeps the inbox in PostgreSQL, through the program's own client. The work of an event gets the client of the
 * transaction that marks it done.
 *
 * @param client a pool of `pg`, or what `postgres()` returns.
 */
export const postgresStore = <C extends PgPool | PostgresJs>(
  client: C,
  { connectMs = 2_000, table = "petrel_inbox" }: SqlStoreOptions = {}
): Store<PostgresTx<C>> => {
  const db = "begin" in client ? postgresJsDatabase(client) : pgDatabase(client, connectMs)
  return sqlStore(db as SqlDatabase<unknown>, sqlTables(table)) as Store<PostgresTx<C>>
}
