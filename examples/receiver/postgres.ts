import { postgresStore } from "petrel/receiver"
import pg from "pg"
import type { ShopDatabase } from "./database.ts"

export const openPostgres = (url: string): ShopDatabase<pg.PoolClient> => {
  const pool = new pg.Pool({ connectionString: url })
  return {
    store: postgresStore(pool),
    makeTables: async () => {
      await pool.query("create table if not exists shipments (number int not null)")
    },
    ship: async (tx, order) => {
      await tx.query("insert into shipments (number) values ($1)", [order])
    },
    shipments: async () =>
      (await pool.query("select number from shipments")).rows.map(({ number }) => Number(number))
  }
}
