import { Pool, type PoolClient } from "pg"
import postgres from "postgres"
import { afterAll, beforeAll } from "vitest"
import type { Store } from "../../src/receiver/store.ts"
import { postgresStore } from "../../src/receiver/stores/postgres.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { conformance } from "./conformance.ts"

let server: PostgresServer | undefined
const databaseOf = (name: string): Promise<string> => {
  if (server === undefined) throw new Error("PostgreSQL was not started")
  return server.database(name)
}
beforeAll(async () => {
  if (withoutPostgres === undefined) server = await startPostgres()
})
afterAll(() => server?.stop())

const table = "create table counters (name text primary key, n int not null)"
const addition =
  "insert into counters values ($1, 1) on conflict (name) do update set n = counters.n + 1"
const reading = "select n from counters where name = $1"

conformance("The inbox in PostgreSQL through pg", withoutPostgres, async () => {
  const pool = new Pool({ connectionString: await databaseOf("by_pg"), max: 20 })
  await pool.query(table)
  const store: Store<PoolClient> = postgresStore(pool)
  return {
    store,
    isBusyInTime: true,
    isEndedWhenAborted: true,
    failQuietly: (tx) => tx.query("insert into counters values (null, 1)").catch(() => undefined),
    rollBack: (tx) => tx.query("rollback"),
    hold: async (key) => {
      const client = await pool.connect()
      await client.query("begin")
      await client.query("update petrel_inbox set receipts = receipts + 1 where event_key = $1", [
        key
      ])
      return async () => {
        await client.query("commit")
        client.release()
      }
    },
    add: async (tx, name) => {
      await tx.query(addition, [name])
    },
    countOf: async (name) => (await pool.query(reading, [name])).rows[0]?.n ?? 0,
    close: () => pool.end()
  }
})

conformance("The inbox in PostgreSQL through postgres", withoutPostgres, async () => {
  const sql = postgres(await databaseOf("by_postgres"), { max: 20, onnotice: () => undefined })
  await sql.unsafe(table)
  await sql.unsafe("create schema hooks")
  const store: Store<postgres.TransactionSql> = postgresStore(sql, { table: "hooks.inbox" })
  return {
    store,
    isBusyInTime: true,
    isEndedWhenAborted: true,
    failQuietly: (tx) => tx.unsafe("insert into counters values (null, 1)").catch(() => undefined),
    rollBack: (tx) => tx.unsafe("rollback"),
    add: async (tx, name) => {
      await tx.unsafe(addition, [name])
    },
    countOf: async (name) => (await sql.unsafe(reading, [name]))[0]?.n ?? 0,
    close: () => sql.end()
  }
})
