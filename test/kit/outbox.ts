import { readFile } from "node:fs/promises"
import { join } from "node:path"
import pg from "pg"
import postgres from "postgres"
import { migration } from "../../src/outbox/migration.ts"
import type { Transaction } from "../../src/outbox/outbox.ts"
import { readTable, usualTable } from "../../src/outbox/table-name.ts"
import type { PostgresServer } from "./postgres-server.ts"

let databases = 0

/** Makes a database with an empty outbox. Returns its URL. */
export const outboxDatabase = async (server: PostgresServer, table = usualTable) => {
  const url = await server.database(`outbox_${++databases}`)
  await withClient(url, (client) => migrate(client, table))
  return url
}

/** Makes the outbox of that name, or brings it up to date. */
export const migrate = async (client: pg.Client, table = usualTable): Promise<void> => {
  const name = readTable(table)
  if (name === undefined) throw new Error(`${table} is no table`)
  await client.query(migration(name))
}

/** Makes a database with an empty outbox of version 1. Returns its URL. */
export const firstOutboxDatabase = async (server: PostgresServer) => {
  const url = await server.database(`outbox_${++databases}`)
  const text = await readFile(join(import.meta.dirname, "outbox-version-1.sql"), "utf8")
  await withClient(url, (client) => client.query(text))
  return url
}

/** Makes an outbox of version 1 with rows of infinite times, by their ids, and migrates it. */
export const outboxWithInfinity = async (server: PostgresServer) => {
  const url = await firstOutboxDatabase(server)
  await withClient(url, async (client) => {
    await client.query(
      `insert into petrel_outbox (tenant, event_id, type, body, created_at)
        values ('acme', 'never', 'a', '', 'infinity'), ('acme', 'always', 'a', '', '-infinity')`
    )
    await migrate(client)
  })
  return url
}

/** Gives a client of `pg` for as long as `use` runs. */
export const withClient = async <A>(
  url: string,
  use: (client: pg.Client) => Promise<A>
): Promise<A> => {
  const client = new pg.Client({ connectionString: url })
  // A server that is killed breaks the connection: what is asked then fails.
  client.on("error", () => undefined)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Runs a transaction with `pg`. */
export const inPg = <A>(url: string, body: (tx: Transaction) => Promise<A>): Promise<A> =>
  withClient(url, async (client) => {
    await client.query("begin")
    const result = await body(client)
    await client.query("commit")
    return result
  })

/** Runs a transaction with `postgres`. */
export const inPostgres = async <A>(
  url: string,
  body: (tx: Transaction) => Promise<A>
): Promise<A> => {
  const sql = postgres(url, { max: 1, onnotice: () => undefined })
  try {
    return (await sql.begin(body)) as A
  } finally {
    await sql.end()
  }
}
