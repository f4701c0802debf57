/* What the SQL stores need of a database, whatever its client is. */

/** A value of a parameter. */
export type SqlValue = string | number | null | Uint8Array

export type SqlRow = Readonly<Record<string, unknown>>

/** A connection, or what takes statements one by one. Parameters are `?`, in order. */
export interface SqlSession {
  /** Returns the rows of a statement. */
  readonly rows: (sql: string, values?: ReadonlyArray<SqlValue>) => Promise<ReadonlyArray<SqlRow>>
  /** Returns how many rows a statement has changed. */
  readonly run: (sql: string, values?: ReadonlyArray<SqlValue>) => Promise<number>
}

/** What a failed transaction is to be answered with. */
export type SqlTrouble =
  /** A deadlock or a conflict: the same transaction may succeed at once. */
  | "conflict"
  /** A lock was waited for too long. */
  | "locked"
  /** The database, or the connection to it, is not there. */
  | "unavailable"
  /** The tables are missing or of another version. */
  | "not-migrated"
  /** What is to be made is there already. */
  | "taken"

export interface SqlDatabase<Tx> extends SqlSession {
  readonly dialect: SqlDialect
  /** Runs work in a transaction of one connection, and commits it when the work has returned. */
  readonly transaction: <A>(
    work: (tx: Tx, session: SqlSession) => Promise<A>,
    options?: TransactionOptions
  ) => Promise<A>
}

/** What is said where the transaction of work was over before the work was. */
export const endedBefore =
  "the work's transaction was over before the work: a statement failed and the work caught its error, or a statement has ended the transaction. Let such errors pass, and neither commit nor roll back"

export interface TransactionOptions {
  /** How long a lock is waited for. (Default: as the database is set) */
  readonly lockMs?: number
  /** Rolls the transaction back when it is aborted. Without it, the transaction has the store's own statements alone. */
  readonly signal?: AbortSignal
}

/** Names of the tables. */
export interface SqlTables {
  readonly inbox: string
  readonly versions: string
  readonly schema: string
}

/** A row of the inbox, with what tells whether it is there. */
export interface NewRow {
  readonly table: string
  readonly columns: ReadonlyArray<string>
  readonly expressions: ReadonlyArray<string>
  readonly values: ReadonlyArray<SqlValue>
  readonly source: string
  readonly key: string
  /** The hash of the body. */
  readonly hash: string
}

/** What differs between databases. */
export interface SqlDialect {
  readonly name: string
  /** Fails with StoreUnavailable where the program's connections are such that the store cannot work. */
  readonly checkSession?: (session: SqlSession) => Promise<void>
  /** An expression: the database's clock at the beginning of the transaction, in ms since 1970. Indexes serve it. */
  readonly nowMs: string
  /** An expression: the database's clock now, in ms since 1970. */
  readonly clockMs: string
  /** Added to a selection of rows that are to be changed: takes none that another transaction has. */
  readonly forUpdate: string
  /** How many transactions there can be at the same time, where that is one. */
  readonly atOnce?: number
  /** Whether a `with` may change rows. */
  readonly changesInWith: boolean
  /** The statements of each version of the tables, the first version's first. */
  readonly migrations: (tables: SqlTables) => ReadonlyArray<ReadonlyArray<string>>
  /** Keeps two processes from migrating at once, within a transaction; and what ends that, if the commit does not. */
  readonly migrationLock: { readonly take?: string; readonly release?: string }
  /** Whether `insert` needs a transaction. */
  readonly insertsInTransaction: boolean
  /**
   * Inserts a row, or counts a receipt. Does not wait for work that has the row. Returns how often the entry has been
   * received.
   */
  readonly insert: (session: SqlSession, row: NewRow) => Promise<number>
  /** Inserts a row unless its primary key is there. */
  readonly insertIgnore: (table: string, columns: string, values: string) => string
  /** Deletes at most so many rows, those first that expire first. */
  readonly deleteSome: (table: string, where: string, limit: number) => string
  readonly troubleOf: (error: unknown) => SqlTrouble | undefined
}

/** Returns the code of an error of a client, or of what caused it. */
export const codeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return ""
  const { code, errno } = error as { code?: unknown; errno?: unknown }
  return typeof code === "string" ? code : typeof errno === "number" ? `${errno}` : ""
}

/** Codes of Node for a connection that is not there. */
export const connectionCodes: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"],
  ...["EHOSTUNREACH", "ENETUNREACH", "ENOENT"]
])

/** Returns the places of so many parameters. */
export const placesFor = (count: number): string => Array(count).fill("?").join(", ")

/** Returns the statement with `$1`, `$2`, … */
export const numbered = (sql: string): string => {
  let at = 0
  return sql.replaceAll("?", () => `$${++at}`)
}

const named = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/

/** The inbox's table, unless another is named. */
export const defaultTable = "petrel_inbox"

/**
 * Returns the names of the tables.
 *
 * @throws if the name is not one that needs no quotes.
 */
export const sqlTables = (table: string): SqlTables => {
  if (!named.test(table) || table.length > 50)
    throw new Error(
      `the table's name ${JSON.stringify(table)} must be letters, digits and _, at most 50, with or without a schema`
    )
  return { inbox: table, versions: `${table}_versions`, schema: `${table}_schema` }
}

/** Inserts an entry, or counts a receipt, where the database has `on conflict` and `returning`. */
export const insertReturning =
  (skipLocked: string): SqlDialect["insert"] =>
  async (session, { columns, expressions, hash, key, source, table, values }) => {
    const inserted = await session.rows(
      `insert into ${table} (${columns.join(", ")}) values (${expressions.join(", ")})
       on conflict (source, event_key) do nothing returning receipts`,
      values
    )
    if (inserted.length === 1) return 1
    const known = `from ${table} where source = ? and event_key = ?`
    const counted = await session.rows(
      `update ${table} set receipts = receipts + 1,
         conflicts = conflicts + case when body_hash = ? then 0 else 1 end
       where id = (select id ${known} ${skipLocked}) returning receipts`,
      [hash, source, key]
    )
    const [row] =
      counted.length === 1 ? counted : await session.rows(`select receipts ${known}`, [source, key])
    return Math.max(2, Number(row?.receipts ?? 2))
  }

/** Inserts a row unless its primary key is there, where the database has `on conflict`. */
export const insertUnlessThere: SqlDialect["insertIgnore"] = (table, columns, values) =>
  `insert into ${table} (${columns}) values (${values}) on conflict do nothing`

/** Returns the values with bytes as Buffers, which every client takes. */
export const buffered = (values: ReadonlyArray<SqlValue>): Array<string | number | null | Buffer> =>
  values.map((value) =>
    value instanceof Uint8Array
      ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      : value
  )
