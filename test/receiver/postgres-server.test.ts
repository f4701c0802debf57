import { Client } from "pg"
import { assert, describe, it } from "vitest"
import { startPostgres, withoutPostgres } from "../kit/postgres-server.ts"

const rowsOf = async (url: string, query: string): Promise<ReadonlyArray<unknown>> => {
  const client = new Client({ connectionString: url })
  client.on("error", () => undefined)
  await client.connect()
  try {
    return (await client.query(query)).rows
  } finally {
    await client.end()
  }
}

describe.skipIf(withoutPostgres !== undefined)("The PostgreSQL of the tests", () => {
  it("keeps what was committed when it is killed, and takes settings", async () => {
    const server = await startPostgres({ wal_level: "logical" })
    try {
      const url = await server.database("shop")
      await rowsOf(url, "create table paid (id int)")
      await rowsOf(url, "insert into paid values (1)")
      await server.kill9()
      await server.restart()
      assert.deepStrictEqual(await rowsOf(url, "select * from paid"), [{ id: 1 }])
      assert.deepStrictEqual(await rowsOf(url, "show wal_level"), [{ wal_level: "logical" }])
    } finally {
      await server.stop()
    }
  })
})
