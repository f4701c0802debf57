import { after, monotonicMs, pause, random } from "../machine.ts"
import { type Store, StoreUnavailable } from "../store.ts"
import {
  buffered,
  defaultTable,
  insertReturning,
  insertUnlessThere,
  type SqlDatabase,
  type SqlDialect,
  type SqlRow,
  type SqlSession,
  type SqlTables,
  type SqlTrouble,
  sqlTables
} from "./sql.ts"
import { sqlStore } from "./sql-store.ts"

/** What the store uses of `DatabaseSync` of `node:sqlite`, and of `better-sqlite3`. */
export interface SqliteClient {
  exec(sql: string): unknown
  prepare(sql: string): {
    // biome-ignore lint/suspicious/noExplicitAny: the clients differ in what values they name
    run(...values: Array<any>): { readonly changes: number | bigint }
    // biome-ignore lint/suspicious/noExplicitAny: as above
    all(...values: Array<any>): Array<any>
  }
}

const migrations = ({ inbox, versions }: SqlTables): ReadonlyArray<ReadonlyArray<string>> => [
  [
    `create table ${inbox} (
      id integer primary key autoincrement,
      source text not null,
      event_key text not null,
      type text,
      subject text,
      version integer,
      state text not null,
      attempts integer not null default 0,
      next_at integer not null,
      headers text not null,
      content_type text not null,
      body blob,
      body_hash text not null,
      receipts integer not null default 1,
      conflicts integer not null default 0,
      happened_at integer,
      received_at integer not null,
      started_at integer,
      finished_at integer,
      expires_at integer not null,
      error text,
      unique (source, event_key)
    ) strict`,
    `create index ${inbox}_due on ${inbox} (next_at, id) where state = 'received'`,
    `create index ${inbox}_order on ${inbox} (source, subject, id) where state = 'received' and subject is not null`,
    `create index ${inbox}_kept on ${inbox} (state, id) where state in ('dead', 'quarantined')`,
    `create index ${inbox}_expiry on ${inbox} (expires_at) where state in ('done', 'stale', 'discarded')`,
    `create table ${versions} (
      source text not null,
      subject text not null,
      version integer not null,
      expires_at integer not null,
      primary key (source, subject)
    ) strict`,
    `create index ${versions}_expiry on ${versions} (expires_at)`
  ]
]

/** Codes of the database: a lock that another process has. */
const busyCodes: ReadonlySet<number> = new Set([5, 6])
const unavailableCodes: ReadonlySet<number> = new Set([8, 10, 13, 14])

const troubleOf = (error: unknown): SqlTrouble | undefined => {
  if (!(error instanceof Error)) return undefined
  if (error instanceof StoreUnavailable) return "unavailable"
  if (/no such (table|column)/.test(error.message)) return "not-migrated"
  if (/ already exists$/.test(error.message)) return "taken"
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown }
  if (code === "SQLITE_BUSY" || code === "SQLITE_LOCKED") return "locked"
  if (typeof code === "string" && /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(code))
    return "unavailable"
  if (typeof errcode !== "number") return undefined
  // The lower eight bits are the kind of the error.
  if (busyCodes.has(errcode & 255)) return "locked"
  return unavailableCodes.has(errcode & 255) ? "unavailable" : undefined
}

const nowMs = "cast(unixepoch('subsec') * 1000 as integer)"

export const sqliteDialect: SqlDialect = {
  name: "SQLite",
  nowMs,
  clockMs: nowMs,
  // A transaction has the whole database.
  forUpdate: "",
  changesInWith: false,
  migrations,
  migrationLock: {},
  atOnce: 1,
  insertsInTransaction: false,
  insert: insertReturning(""),
  insertIgnore: insertUnlessThere,
  deleteSome: (table, where, limit) =>
    `delete from ${table} where rowid in (
       select rowid from ${table} where ${where} order by expires_at limit ${limit})`,
  troubleOf
}

/** How long a lock of another process is waited for. */
const busyMs = 2_000

/** Lets one transaction run after the other. One that waits for too long is not run at all. */
const makeTurn = (turnMs: number) => {
  const waiting = new Set<() => void>()
  let isTaken = false
  const next = () => {
    const [first] = waiting
    isTaken = first !== undefined
    first?.()
  }
  const turnOf = () =>
    new Promise<void>((resolve, reject) => {
      if (!isTaken) {
        isTaken = true
        resolve()
        return
      }
      const begin = () => {
        waiting.delete(begin)
        cancel()
        resolve()
      }
      const cancel = after(turnMs, () => {
        waiting.delete(begin)
        reject(
          new StoreUnavailable(`SQLite: the work before this one has not ended for ${turnMs} ms`)
        )
      })
      waiting.add(begin)
    })
  return async <A>(run: () => Promise<A>): Promise<A> => {
    await turnOf()
    try {
      return await run()
    } finally {
      next()
    }
  }
}

const sqliteDatabase = <C extends SqliteClient>(client: C, turnMs: number): SqlDatabase<C> => {
  const prepared = new Map<string, ReturnType<C["prepare"]>>()
  const statement = (sql: string) => {
    const found = prepared.get(sql)
    if (found !== undefined) return found
    const made = client.prepare(sql) as ReturnType<C["prepare"]>
    prepared.set(sql, made)
    return made
  }
  const session: SqlSession = {
    rows: async (sql, values = []) => statement(sql).all(...buffered(values)) as Array<SqlRow>,
    run: async (sql, values = []) => Number(statement(sql).run(...buffered(values)).changes)
  }

  // The connection has one transaction at a time, and what runs beside it would be a part of it.
  const turn = makeTurn(turnMs)

  /** Waits for the lock of another process without holding up this one, as SQLite itself would. */
  const begin = async (): Promise<void> => {
    const deadline = monotonicMs() + busyMs
    for (;;)
      try {
        client.exec("begin immediate")
        return
      } catch (error) {
        if (troubleOf(error) !== "locked" || monotonicMs() > deadline) throw error
        await pause(5 + 20 * random())
      }
  }

  // What is aborted goes on to its end: its statements would not be in a transaction otherwise.
  const transaction: SqlDatabase<C>["transaction"] = (work) =>
    turn(async () => {
      await begin()
      try {
        const result = await work(client, session)
        client.exec("commit")
        return result
      } catch (error) {
        // Some errors have rolled the transaction back already.
        try {
          client.exec("rollback")
        } catch {}
        throw error
      }
    })

  return {
    dialect: sqliteDialect,
    rows: (sql, values) => transaction(() => session.rows(sql, values)),
    run: (sql, values) => transaction(() => session.run(sql, values)),
    transaction
  }
}

export interface SqliteStoreOptions {
  /** The inbox's table. Others have its name and an ending. (Default: petrel_inbox) */
  readonly table?: string
  /** How long the works before one are waited for, in ms. (Default: 10000) */
  readonly turnMs?: number
}

/**
 * Keeps the inbox in an SQLite file, which several processes of one machine may share. The work of an event gets the
 * database, in the transaction that marks the event done: nothing else should use this connection, since what it does
 * meanwhile is in that transaction, too.
 *
 * @param client a `DatabaseSync` of `node:sqlite`, or a database of `better-sqlite3`.
 */
export const sqliteStore = <C extends SqliteClient>(
  client: C,
  { table = defaultTable, turnMs = 10_000 }: SqliteStoreOptions = {}
): Store<C> => {
  const tables = sqlTables(table)
  if (table.includes(".")) throw new Error("a table of SQLite is named without a schema")
  return sqlStore(sqliteDatabase(client, turnMs), tables)
}
