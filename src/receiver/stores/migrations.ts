import { StoreUnavailable } from "../store.ts"
import {
  defaultTable,
  type SqlDatabase,
  type SqlDialect,
  type SqlSession,
  type SqlTables
} from "./sql.ts"
import { entryColumns } from "./sql-rows.ts"

/* The tables have versions: each list of statements below leads from one to the next. */

/** What is said where the tables are missing, or of an older version. */
export const missingTables = (table: string): string => {
  const command = `petrel inbox migrate${table === defaultTable ? "" : ` --table ${table}`}`
  return `the tables of the inbox (${table}) are missing or of an older version: run \`${command}\` or \`await hooks.migrate()\``
}

const schemaTable = (tables: SqlTables): string =>
  `create table if not exists ${tables.schema} (version int not null primary key)`

const otherTable = (table: string, { schema }: SqlTables): string =>
  `the table ${table} is missing, or does not have the columns of an inbox: it is another program's, or was changed by hand. Rename it, drop ${schema} and migrate again, or give the inbox another name (\`table\` of the store)`

const rename = "Rename it, or give the inbox another name (`table` of the store)"

const takenName = (error: unknown, { schema }: SqlTables): string =>
  `${error instanceof Error ? error.message : error}: it is another program's, or ${schema} was dropped. ${rename}`

const otherSchemaTable = ({ schema }: SqlTables): string =>
  `the table ${schema} does not have the column of an inbox: it is another program's. ${rename}`

const versionOf = async (session: SqlSession, tables: SqlTables): Promise<number> => {
  const rows = await session.rows(`select max(version) as version from ${tables.schema}`)
  return Number(rows[0]?.version ?? 0)
}

const newerTables = ({ inbox }: SqlTables, version: number, known: number): string =>
  `the tables of the inbox (${inbox}) are of version ${version}, and this program's petrel knows ${known}: update the package petrel of this program, as \`npm install\` does`

/**
 * @throws StoreUnavailable, with what to do, if the tables are of another version than this program's, or its
 * connections are not fit for the store.
 */
export const checkVersion = async <Tx>(db: SqlDatabase<Tx>, tables: SqlTables): Promise<void> => {
  await db.dialect.checkSession?.(db)
  const [version, known] = [await versionOf(db, tables), db.dialect.migrations(tables).length]
  if (version < known) throw new StoreUnavailable(missingTables(tables.inbox))
  if (version > known) throw new StoreUnavailable(newerTables(tables, version, known))
}

/** Runs a statement that makes something. Fails, with what to do, where another program has that name. */
const make = async (
  { troubleOf }: SqlDialect,
  session: SqlSession,
  tables: SqlTables,
  statement: string
): Promise<void> => {
  try {
    await session.run(statement)
  } catch (cause) {
    if (troubleOf(cause) !== "taken") throw cause
    throw new StoreUnavailable(takenName(cause, tables), { cause })
  }
}

/** Fails where a table of that name is not an inbox's: making one passes it over, and says nothing. */
const checkColumns = async <Tx>(
  { dialect }: SqlDatabase<Tx>,
  session: SqlSession,
  tables: SqlTables
): Promise<void> => {
  for (const [table, columns] of [
    [tables.inbox, [...entryColumns, "body", "body_hash"]],
    [tables.versions, ["source", "subject", "version", "expires_at"]]
  ] as const)
    try {
      await session.rows(`select ${columns.join(", ")} from ${table} where 1 = 0`)
    } catch (error) {
      if (dialect.troubleOf(error) !== "not-migrated") throw error
      throw new StoreUnavailable(otherTable(table, tables), { cause: error })
    }
}

/** True where there is nothing to do: whoever may not create tables may ask as well. */
const isMigrated = async <Tx>(db: SqlDatabase<Tx>, tables: SqlTables): Promise<boolean> => {
  try {
    return (await versionOf(db, tables)) === db.dialect.migrations(tables).length
  } catch (error) {
    if (db.dialect.troubleOf(error) === "not-migrated") return false
    throw error
  }
}

/**
 * Makes the tables, or changes those of an older version. Two processes may do so at once.
 *
 * @throws StoreUnavailable if the tables are of a newer version.
 */
export const migrate = async <Tx>(db: SqlDatabase<Tx>, tables: SqlTables): Promise<void> => {
  const { dialect } = db
  await dialect.checkSession?.(db)
  if (await isMigrated(db, tables)) return checkColumns(db, db, tables)
  await db.transaction(async (_, session) => {
    const { release, take } = dialect.migrationLock
    if (take !== undefined) await session.rows(take)
    try {
      await session.run(schemaTable(tables))
      const version = await versionOf(session, tables).catch((cause) => {
        if (dialect.troubleOf(cause) !== "not-migrated") throw cause
        throw new StoreUnavailable(otherSchemaTable(tables), { cause })
      })
      const migrations = dialect.migrations(tables)
      if (version > migrations.length)
        throw new StoreUnavailable(newerTables(tables, version, migrations.length))
      for (const [at, statements] of migrations.entries()) {
        if (at < version) continue
        for (const statement of statements) await make(dialect, session, tables, statement)
        if (at === migrations.length - 1) await checkColumns(db, session, tables)
        await session.run(`insert into ${tables.schema} (version) values (${at + 1})`)
      }
    } finally {
      if (release !== undefined) await session.rows(release)
    }
  })
}

/**
 * Returns the statements that make the tables, for people who run them by hand.
 *
 * @param from the version of the tables that are there; 0 for none.
 */
export const migrationSql = (dialect: SqlDialect, tables: SqlTables, from = 0): string =>
  [
    schemaTable(tables),
    ...dialect
      .migrations(tables)
      .flatMap((statements, at) =>
        at < from
          ? []
          : [...statements, `insert into ${tables.schema} (version) values (${at + 1})`]
      )
  ]
    .map((statement) => `${statement.replaceAll(/\n {4,6}/g, "\n")};\n`)
    .join("\n")
