import { unlessAborted, within } from "../machine.ts"
import { type Store, StoreUnavailable } from "../store.ts"
import {
  buffered,
  codeOf,
  connectionCodes,
  defaultTable,
  insertReturning,
  insertUnlessThere,
  numbered,
  type SqlDatabase,
  type SqlDialect,
  type SqlRow,
  type SqlSession,
  type SqlTables,
  type SqlTrouble,
  type SqlValue,
  sqlTables,
  type TransactionOptions
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
  // biome-ignore lint/suspicious/noExplicitAny: the pool has listeners of several signatures
  on?(event: any, listener: any): any
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
  /** How long one statement of the store may take, in ms, before its connection is given up. (Default: 30000) */
  readonly silentMs?: number
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
  if (code === "42P07") return "taken"
  // 08: connection; 28: login; 53: resources; 57P: shutdown; 25006: a replica, for now; 3D000: no
  // such database, for now; 42501: no right to a table.
  if (/^(08|28|53|57P|25006|3D000|42501)/.test(code) || connectionCodes.has(code))
    return "unavailable"
  if (/^CONNECT(ION)?_/.test(code)) return "unavailable"
  return error instanceof Error &&
    /connection terminated|timeout exceeded when trying to connect|query read timeout|client has encountered a connection error/i.test(
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
  insertsInTransaction: false,
  insert: insertReturning("for update skip locked"),
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

/** A client of the pool in use, and what became of its connection. */
interface Borrowed {
  readonly client: PgClient
  broken: Error | undefined
}

/** Codes of a server that is going, gone, or a replica since: another connection may lead to the one that is not. */
const isGone = (error: unknown): error is Error => /^(08|57P|25006)/.test(codeOf(error))

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
  } catch (error) {
    if (isGone(error)) borrowed.broken ??= error
    throw error
  } finally {
    client.off?.("error", onError)
    client.release(borrowed.broken)
  }
}

const pgDatabase = (
  pool: PgPool,
  { connectMs, silentMs }: Required<Pick<SqlStoreOptions, "connectMs" | "silentMs">>
): SqlDatabase<PgClient> => {
  /** Waits for an answer. A connection that brings none is not used again, or it would keep its place in the pool. */
  const answered = <A>(borrowed: Borrowed, asked: Promise<A>): Promise<A> =>
    within(silentMs, asked, () => {
      const error = new StoreUnavailable(`PostgreSQL has not answered for ${silentMs} ms`)
      borrowed.broken = error
      return error
    })
  const session = (borrowed: Borrowed): SqlSession => {
    const { client } = borrowed
    const ask = (sql: string, values: ReadonlyArray<SqlValue> = []) =>
      answered(borrowed, client.query(numbered(sql), buffered(values)))
    return {
      rows: async (sql, values) => (await ask(sql, values)).rows,
      run: async (sql, values) => (await ask(sql, values)).rowCount ?? 0
    }
  }
  // A server that shuts down may say so with its greeting, before anybody can listen: the process would end.
  pool.on?.("connect", (client: { on?(event: "error", listener: () => void): unknown }) => {
    client.on?.("error", () => undefined)
  })
  return {
    dialect: postgresDialect,
    rows: (sql, values) =>
      borrow(pool, connectMs, (borrowed) => session(borrowed).rows(sql, values)),
    run: (sql, values) => borrow(pool, connectMs, (borrowed) => session(borrowed).run(sql, values)),
    transaction: (work, { lockMs, signal } = {}) =>
      borrow(pool, connectMs, async (borrowed) => {
        const { client } = borrowed
        const ask = (sql: string) => answered(borrowed, client.query(sql))
        try {
          await ask(`begin ${begin};${lockTimeout(lockMs)}`)
          const result = await unlessAborted(work(client, session(borrowed)), signal)
          await ask("commit")
          return result
        } catch (error) {
          if (signal?.aborted === true) borrowed.broken = new Error("the work took too long")
          else if (borrowed.broken === undefined)
            await ask("rollback").catch((failed: Error) => {
              borrowed.broken = failed
            })
          throw error
        }
      })
  }
}

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

/**
 * Returns what work gets in place of the transaction's `sql`, and what ends it: work that goes on after its time would
 * else find the connection in another transaction, or in none.
 */
const endable = (tx: PostgresJs): { readonly tx: PostgresJs; readonly end: () => void } => {
  let isOver = false
  const check = () => {
    if (isOver) throw new Error("the transaction of this work is over")
  }
  const checked = <F extends object>(target: F): F =>
    new Proxy(target, {
      apply: (call, self, values) => {
        check()
        return Reflect.apply(
          call as unknown as (...values: Array<unknown>) => unknown,
          self,
          values
        )
      },
      get: (from, name) => {
        const found = Reflect.get(from, name)
        return typeof found === "function" ? checked(found) : found
      }
    })
  return {
    tx: checked(tx),
    end: () => {
      isOver = true
    }
  }
}

const postgresJsDatabase = (sql: PostgresJs): SqlDatabase<PostgresJs> => ({
  dialect: postgresDialect,
  ...postgresJsSession(sql),
  transaction: async <A>(
    work: (tx: PostgresJs, session: SqlSession) => Promise<A>,
    { lockMs, signal }: TransactionOptions = {}
  ): Promise<A> =>
    sql.begin(begin, async (tx: PostgresJs) => {
      if (lockMs !== undefined) await tx.unsafe(lockTimeout(lockMs))
      const given = endable(tx)
      try {
        return await unlessAborted(work(given.tx, postgresJsSession(tx)), signal)
      } finally {
        given.end()
      }
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
  { connectMs = 2_000, silentMs = 30_000, table = defaultTable }: SqlStoreOptions = {}
): Store<PostgresTx<C>> => {
  const db =
    "begin" in client ? postgresJsDatabase(client) : pgDatabase(client, { connectMs, silentMs })
  return sqlStore(db as SqlDatabase<unknown>, sqlTables(table)) as Store<PostgresTx<C>>
}
