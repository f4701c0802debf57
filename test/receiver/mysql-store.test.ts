import { createPool, type Pool, type PoolConnection, type RowDataPacket } from "mysql2/promise"
import { assert, it } from "vitest"
import type { Store } from "../../src/receiver/store.ts"
import { mysqlStore } from "../../src/receiver/stores/mysql.ts"
import { startMariadb, withoutMariadb } from "../kit/mariadb-server.ts"
import { conformance } from "./conformance.ts"

/** Loses a deadlock against a transaction that has changed more, and so is not the one to be rolled back. */
const loseADeadlock = async (pool: Pool, tx: PoolConnection): Promise<void> => {
  const other = await pool.getConnection()
  try {
    await other.query("create table if not exists locks (id int primary key, n int not null)")
    await other.query("insert ignore into locks values (1, 0), (2, 0)")
    await other.beginTransaction()
    const many = Array.from({ length: 200 }, (_, at) => `('deadlock-${at}', 1)`).join()
    await other.query(`insert into counters values ${many} on duplicate key update n = n + 1`)
    await other.query("update locks set n = n + 1 where id = 1")
    await tx.query("update locks set n = n + 1 where id = 2")
    const waits = other.query("update locks set n = n + 1 where id = 2")
    const lost = await tx.query("update locks set n = n + 1 where id = 1").then(
      () => undefined,
      (error: { readonly code?: string }) => error.code
    )
    assert.strictEqual(lost, "ER_LOCK_DEADLOCK")
    await waits
    await other.rollback()
  } finally {
    other.release()
  }
}

conformance("The inbox in MariaDB through mysql2", withoutMariadb, async () => {
  const server = await startMariadb()
  const pool = createPool({ uri: server.url, connectionLimit: 30 })
  await pool.query("create table counters (name varchar(100) primary key, n int not null)")
  const store: Store<PoolConnection> = mysqlStore(pool)
  return {
    store,
    isBusyInTime: true,
    isEndedWhenAborted: true,
    failQuietly: (tx) => loseADeadlock(pool, tx),
    rollBack: (tx) => tx.query("rollback"),
    hold: async (key) => {
      const other = await pool.getConnection()
      await other.beginTransaction()
      await other.execute("update petrel_inbox set receipts = receipts + 1 where event_key = ?", [
        key
      ])
      return async () => {
        await other.commit()
        other.release()
      }
    },
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
