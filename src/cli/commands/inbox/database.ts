import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { Config, Effect, Option } from "effect"
import { Flag } from "effect/cli"
import type { Queue, Store } from "../../../receiver/store.ts"
import { migrationSql } from "../../../receiver/stores/migrations.ts"
import { mysqlDialect, mysqlStore } from "../../../receiver/stores/mysql.ts"
import { postgresDialect, postgresStore } from "../../../receiver/stores/postgres.ts"
import { defaultTable, type SqlDialect, sqlTables } from "../../../receiver/stores/sql.ts"
import { sqliteDialect, sqliteStore } from "../../../receiver/stores/sqlite.ts"
import { Refused, refusal } from "../../refused.ts"

/* Where an inbox is, and how the commands open it: with the driver that the user's project has. */

type Kind = "mysql" | "postgres" | "sqlite"

const schemes: Readonly<Record<string, Kind>> = {
  "postgres:": "postgres",
  "postgresql:": "postgres",
  "mysql:": "mysql",
  "mariadb:": "mysql",
  "sqlite:": "sqlite"
}

const kindOf = (url: string): Kind | undefined =>
  schemes[`${url.slice(0, url.indexOf(":"))}:`.toLowerCase()]

const variable = "DATABASE_URL"

export const databaseFlag = Flag.String("database").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription(
    `The database that has the inbox: postgres://…, mysql://… or sqlite:FILE (default: ${variable}, where a password is hidden from others)`
  ),
  Flag.withFallbackConfig(Config.String(variable)),
  Flag.withDefault(""),
  Flag.filter(
    (text) => text === "" || kindOf(text) !== undefined,
    () => "must be a URL such as postgres://user@127.0.0.1/shop, mysql://… or sqlite:shop.db"
  )
)

export const tableFlag = Flag.String("table").pipe(
  Flag.withMetavar("TABLE"),
  Flag.withDescription("The inbox's table (default: petrel_inbox)"),
  Flag.withDefault(defaultTable),
  Flag.filterMap(
    (text) => {
      try {
        return Option.some(sqlTables(text).inbox)
      } catch {
        return Option.none()
      }
    },
    () => "must be letters, digits and _, at most 50, with or without a schema"
  )
)

/** A driver of the user's project, as it is after `import`. */
// biome-ignore lint/suspicious/noExplicitAny: its own types are the user's
type Driver = any

/** Returns a driver of the project in a folder; undefined if it has none of that name. */
const load = async (folder: string, name: string): Promise<Driver> => {
  let path: string
  try {
    path = createRequire(join(folder, "package.json")).resolve(name)
  } catch {
    return undefined
  }
  const loaded = await import(pathToFileURL(path).href)
  return loaded.default ?? loaded
}

interface Opened {
  // biome-ignore lint/suspicious/noExplicitAny: the commands do no work in its transactions
  readonly store: Store<any>
  readonly close: () => Promise<void>
}

const openPostgres = async (folder: string, url: string, table: string) => {
  const pg: Driver = await load(folder, "pg")
  if (pg !== undefined) {
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    pool.on("error", () => undefined)
    return { store: postgresStore(pool, { table }), close: () => pool.end() }
  }
  const postgres: Driver = await load(folder, "postgres")
  if (postgres === undefined) return undefined
  const sql = postgres(url, { max: 2, onnotice: () => undefined })
  return { store: postgresStore(sql, { table }), close: () => sql.end({ timeout: 1 }) }
}

const openMysql = async (folder: string, url: string, table: string) => {
  const mysql: Driver = await load(folder, "mysql2/promise")
  if (mysql === undefined) return undefined
  const pool = mysql.createPool({ uri: url.replace(/^mariadb:/i, "mysql:"), connectionLimit: 2 })
  return { store: mysqlStore(pool, { table }), close: () => pool.end() }
}

const openSqlite = async (file: string, table: string) => {
  const { DatabaseSync } = await import("node:sqlite")
  const database = new DatabaseSync(file)
  return { store: sqliteStore(database, { table }), close: async () => database.close() }
}

const drivers: Readonly<Record<Exclude<Kind, "sqlite">, string>> = {
  postgres: "PostgreSQL: run `npm install pg` there, or postgres instead",
  mysql: "MySQL or MariaDB: run `npm install mysql2` there"
}

const named = Effect.fnUntraced(function* (url: string) {
  const kind = kindOf(url)
  if (kind === undefined)
    return yield* refusal([`say which database has the inbox, with --database or ${variable}`])
  if (kind !== "sqlite" && URL.canParse(url) && new URL(url).password !== "")
    if (process.env[variable] !== url)
      yield* Effect.logWarning(
        `other users of this machine see the password in --database while this runs: use ${variable}`
      )
  return kind
})

/** The file of `sqlite:FILE`, `sqlite:///FILE` and so on. */
const fileOf = (url: string): string => url.slice("sqlite:".length).replace(/^\/\/(?=\/)/, "")

/**
 * Opens the store of a database until the scope closes.
 *
 * @param mayMake whether a file of SQLite that is not there may be made.
 */
export const openStore = Effect.fnUntraced(function* (url: string, table: string, mayMake = false) {
  const kind = yield* named(url)
  const folder = process.cwd()
  if (kind === "sqlite" && !mayMake && !existsSync(fileOf(url)))
    return yield* refusal([`there is no file ${fileOf(url)}`])
  const opening = (): Promise<Opened | undefined> => {
    switch (kind) {
      case "postgres":
        return openPostgres(folder, url, table)
      case "mysql":
        return openMysql(folder, url, table)
      case "sqlite":
        return openSqlite(fileOf(url), table)
    }
  }
  const opened = yield* Effect.acquireRelease(asked(opening), (one) =>
    Effect.promise(() => one?.close().catch(() => undefined) ?? Promise.resolve())
  )
  if (opened !== undefined) return opened.store
  return yield* new Refused({
    message: `the project in ${folder} has no driver for ${kind === "sqlite" ? "SQLite" : drivers[kind]}, and then this again`
  })
})

/** The queue of a store of SQL: it has one. */
export const openQueue = Effect.fnUntraced(function* (url: string, table: string) {
  const { queue } = yield* openStore(url, table)
  if (queue === undefined) return yield* new Refused({ message: "the store keeps no events" })
  return queue as Queue<unknown>
})

/** Asks a database. What goes wrong is one sentence. */
export const asked = <A>(ask: () => Promise<A>): Effect.Effect<A, Refused> =>
  Effect.tryPromise({
    try: ask,
    catch: (error) =>
      new Refused({
        message: `the database does not do that: ${error instanceof Error ? error.message || error.name : error}`
      })
  })

const dialects: Readonly<Record<Kind, SqlDialect>> = {
  postgres: postgresDialect,
  mysql: mysqlDialect,
  sqlite: sqliteDialect
}

/** Returns the statements that make the tables. Opens no connection. */
export const statementsFor = Effect.fnUntraced(function* (url: string, table: string) {
  return migrationSql(dialects[yield* named(url)], sqlTables(table))
})
