import { unlessAborted, within } from "../machine.ts"
import { type Store, StoreUnavailable } from "../store.ts"
import type { SqlStoreOptions } from "./postgres.ts"
import {
  buffered,
  codeOf,
  connectionCodes,
  defaultTable,
  type SqlDatabase,
  type SqlDialect,
  type SqlSession,
  type SqlTables,
  type SqlTrouble,
  type SqlValue,
  sqlTables
} from "./sql.ts"
import { sqlStore } from "./sql-store.ts"

/** A statement, and how its rows are read, whatever the program's pool says of that. */
interface MysqlStatement {
  readonly sql: string
  readonly rowsAsArray: false
}

/** What the store uses of a connection of `mysql2/promise`. */
export interface MysqlConnection {
  // biome-ignore lint/suspicious/noExplicitAny: the client has several signatures
  execute(statement: MysqlStatement, values?: any): Promise<[any, any]>
  // biome-ignore lint/suspicious/noExplicitAny: the client has several signatures
  query(statement: MysqlStatement, values?: any): Promise<[any, any]>
  release(): void
  destroy(): void
}

/** What the store uses of a pool of `mysql2/promise`. */
export interface MysqlPool<C extends MysqlConnection> {
  getConnection(): Promise<C>
}

const text = "character set utf8mb4 collate utf8mb4_bin"

const migrations = ({ inbox, versions }: SqlTables): ReadonlyArray<ReadonlyArray<string>> => [
  [
    // A transaction does not undo these: each may run again.
    `create table if not exists ${inbox} (
      id bigint not null auto_increment primary key,
      source varchar(64) ${text} not null,
      event_key varchar(255) ${text} not null,
      type varchar(255) ${text},
      subject varchar(255) ${text},
      version bigint,
      state varchar(16) character set ascii not null,
      attempts int not null default 0,
      next_at bigint not null,
      headers mediumtext ${text} not null,
      content_type varchar(255) ${text} not null,
      body longblob,
      body_hash char(64) character set ascii not null,
      receipts int not null default 1,
      conflicts int not null default 0,
      happened_at bigint,
      received_at bigint not null,
      started_at bigint,
      finished_at bigint,
      expires_at bigint not null,
      error text ${text},
      unique key (source, event_key),
      key (state, next_at, id),
      key (source, subject, state, id),
      key (state, expires_at)
    ) engine = InnoDB`,
    `create table if not exists ${versions} (
      source varchar(64) ${text} not null,
      subject varchar(255) ${text} not null,
      version bigint not null,
      expires_at bigint not null,
      primary key (source, subject),
      key (expires_at)
    ) engine = InnoDB`
  ]
]

const conflicts: ReadonlySet<string> = new Set(["ER_LOCK_DEADLOCK", "ER_CHECKREAD"])
const unavailable: ReadonlySet<string> = new Set([
  ...["ER_CON_COUNT_ERROR", "ER_SERVER_SHUTDOWN", "ER_OPTION_PREVENTS_STATEMENT"],
  ...["ER_QUERY_INTERRUPTED", "ER_USER_LIMIT_REACHED", "PROTOCOL_CONNECTION_LOST"],
  // No login, no such database, no right to a table, a full disk: for now, as with PostgreSQL.
  ...["ER_ACCESS_DENIED_ERROR", "ER_ACCOUNT_HAS_BEEN_LOCKED", "ER_BAD_DB_ERROR"],
  ...["ER_DBACCESS_DENIED_ERROR", "ER_TABLEACCESS_DENIED_ERROR"],
  ...["ER_DISK_FULL", "ER_RECORD_FILE_FULL"]
])

const troubleOf = (error: unknown): SqlTrouble | undefined => {
  if (error instanceof StoreUnavailable) return "unavailable"
  const code = codeOf(error)
  if (conflicts.has(code)) return "conflict"
  if (code === "ER_LOCK_WAIT_TIMEOUT") return "locked"
  if (code === "ER_NO_SUCH_TABLE" || code === "ER_BAD_FIELD_ERROR") return "not-migrated"
  if (unavailable.has(code) || connectionCodes.has(code)) return "unavailable"
  // The client says so where it cannot use the connection again.
  if ((error as { readonly fatal?: unknown } | undefined)?.fatal === true) return "unavailable"
  return error instanceof Error && /closed state|Pool is closed/.test(error.message)
    ? "unavailable"
    : undefined
}

/**
 * UTC, because `now()` is a local time: in the hour after clocks are put back, `unix_timestamp(now())` is an hour off. It
 * is the beginning of the statement, of which a transaction has several.
 */
const nowMs =
  "timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', utc_timestamp(3)) div 1000"

/** Text with letters that the charset of the pool's connections does not have would be stored and read as question marks, without an error. */
const checkSession: SqlDialect["checkSession"] = async (session) => {
  const [row] = await session.rows(
    "select @@character_set_client as sent, @@character_set_results as brought"
  )
  const other = [row?.sent, row?.brought].find((charset) => charset !== "utf8mb4")
  if (other !== undefined)
    throw new StoreUnavailable(
      `MySQL: the connections of the pool have the charset ${other}, which does not have all letters: make the pool with \`charset: "utf8mb4"\``
    )
}

export const mysqlDialect: SqlDialect = {
  name: "MySQL",
  checkSession,
  nowMs,
  clockMs: nowMs,
  forUpdate: "for update skip locked",
  changesInWith: false,
  migrations,
  migrationLock: {
    take: "select get_lock('petrel_inbox', 30)",
    release: "select release_lock('petrel_inbox')"
  },
  insertsInTransaction: true,
  insert: async (session, { columns, expressions, hash, key, source, table, values }) => {
    const where = "where source = ? and event_key = ?"
    const known = `select receipts from ${table} ${where}`
    // This reads what is committed, and waits for nobody.
    if ((await session.rows(known, [source, key])).length === 0) {
      // 1: inserted, 2: changed. Of the other ways, `insert ignore` takes values that do not fit, too.
      const changed = await session.run(
        `insert into ${table} (${columns.join(", ")}) values (${expressions.join(", ")})
         on duplicate key update conflicts = conflicts + if(body_hash = values(body_hash), 0, 1),
           receipts = receipts + 1`,
        values
      )
      if (changed === 1) return 1
    } else {
      const [row] = await session.rows(`select id from ${table} ${where} for update skip locked`, [
        source,
        key
      ])
      if (row !== undefined)
        await session.run(
          `update ${table} set receipts = receipts + 1,
             conflicts = conflicts + if(body_hash = ?, 0, 1) where id = ?`,
          [hash, String(row.id)]
        )
    }
    const [row] = await session.rows(known, [source, key])
    return Math.max(2, Number(row?.receipts ?? 2))
  },
  insertIgnore: (table, columns, values) =>
    `insert into ${table} (${columns}) values (${values}) on duplicate key update source = source`,
  deleteSome: (table, where, limit) =>
    `delete from ${table} where ${where} order by expires_at limit ${limit}`,
  troubleOf
}

const mysqlDatabase = <C extends MysqlConnection>(
  pool: MysqlPool<C>,
  { connectMs, silentMs }: Required<Pick<SqlStoreOptions, "connectMs" | "silentMs">>
): SqlDatabase<C> => {
  const borrow = async <A>(use: (connection: C) => Promise<A>): Promise<A> => {
    const late = () =>
      new StoreUnavailable(`MySQL: no connection of the pool was free for ${connectMs} ms`)
    const connection = await within(connectMs, pool.getConnection(), late, (one) => one.release())
    let isBroken = false
    try {
      return await use(connection)
    } catch (error) {
      isBroken = troubleOf(error) === "unavailable"
      throw error
    } finally {
      if (isBroken) connection.destroy()
      else connection.release()
    }
  }
  /** Waits for an answer. A connection that brings none is not used again, or it would keep its place in the pool. */
  const answered = <A>(asked: Promise<A>): Promise<A> =>
    within(silentMs, asked, () => new StoreUnavailable(`MySQL has not answered for ${silentMs} ms`))

  const mysqlSession = (connection: C): SqlSession => {
    // Without values, since not every statement can be prepared.
    const ask = (sql: string, values: ReadonlyArray<SqlValue>) => {
      const statement = { sql, rowsAsArray: false } as const
      return answered(
        values.length === 0
          ? connection.query(statement)
          : connection.execute(statement, buffered(values))
      )
    }
    return {
      rows: async (sql, values = []) => (await ask(sql, values))[0],
      run: async (sql, values = []) => (await ask(sql, values))[0].affectedRows ?? 0
    }
  }
  /** Where a connection's `autocommit` is off, what the program last read on it has begun a transaction. */
  const begin = async (session: SqlSession): Promise<void> => {
    const level = "set transaction isolation level read committed"
    await session.run(level).catch(async (error) => {
      if (codeOf(error) !== "ER_CANT_CHANGE_TX_CHARACTERISTICS") throw error
      // As `start transaction` does by itself.
      await session.run("commit")
      await session.run(level)
    })
    await session.run("start transaction")
  }
  const transaction: SqlDatabase<C>["transaction"] = (work, { lockMs, signal } = {}) =>
    borrow(async (connection) => {
      const session = mysqlSession(connection)
      try {
        if (lockMs !== undefined)
          await session.run(`set innodb_lock_wait_timeout = ${Math.ceil(lockMs / 1_000)}`)
        await begin(session)
        const result = await unlessAborted(work(connection, session), signal)
        await session.run("commit")
        return result
      } catch (error) {
        if (signal?.aborted === true || error instanceof StoreUnavailable) connection.destroy()
        else await session.run("rollback").catch(() => connection.destroy())
        throw error
      } finally {
        // The setting is the connection's, which the program uses for other work, too.
        if (lockMs !== undefined)
          await session.run("set innodb_lock_wait_timeout = default").catch(() => undefined)
      }
    })
  return {
    dialect: mysqlDialect,
    // Statements alone, too: where `autocommit` is off, nobody else would commit them, and they would read what is old.
    rows: (sql, values) => transaction((_, session) => session.rows(sql, values)),
    run: (sql, values) => transaction((_, session) => session.run(sql, values)),
    transaction
  }
}

/**
 * Keeps the inbox in MySQL 8 or MariaDB 10.6 and newer, through the program's own client. The work of an event gets
 * the connection of the transaction that marks it done.
 *
 * @param pool of `mysql2/promise`.
 */
export const mysqlStore = <C extends MysqlConnection>(
  pool: MysqlPool<C>,
  { connectMs = 2_000, silentMs = 30_000, table = defaultTable }: SqlStoreOptions = {}
): Store<C> => {
  if ("promise" in pool) throw new TypeError('use the pool of "mysql2/promise"')
  return sqlStore(mysqlDatabase(pool, { connectMs, silentMs }), sqlTables(table))
}
