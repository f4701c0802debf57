import { createPool, type PoolConnection, type RowDataPacket } from "mysql2/promise"
import { assert, it } from "vitest"
import type { Store } from "../../src/receiver/store.ts"
import { mysqlStore } from "../../src/receiver/stores/mysql.ts"
import { startMariadb, withoutMariadb } from "../kit/mariadb-server.ts"
import { conformance } from "./conformance.ts"

conformance("The inbox in MariaDB through mysql2", withoutMariadb, async () => {
  const server = await startMariadb()
  const pool = createPool({ uri: server.url, connectionLimit: 30 })
  await pool.query("create table counters (name varchar(100) primary key, n int not null)")
  const store: Store<PoolConnection> = mysqlStore(pool)
  return {
    store,
    isBusyInTime: true,
    add: async (tx, name) => {
      await tx.execute("insert into counters values (?, 1) on duplicate key update n = n + 1", [
        name
      ])
    },
    countOf: async (name) => {
      const [rows] = await pool.execute<Array<RowDataPacket>>(
        "select n from counters where name = ?",
        [name]
      )
      return rows[0]?.n ?? 0
    },
    close: async () => {
      await pool.end()
      await server.stop()
    }
  }
})

it("refuses the pool that works with callbacks", () => {
  const callbacks = { getConnection: () => undefined, promise: () => undefined }
  assert.throws(() => mysqlStore(callbacks as never), /mysql2\/promise/)
})
