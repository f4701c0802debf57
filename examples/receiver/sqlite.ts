import { DatabaseSync } from "node:sqlite"
import { sqliteStore } from "petrel/receiver"
import type { ShopDatabase } from "./database.ts"

export const openSqlite = (file: string): ShopDatabase<DatabaseSync> => {
  // The store has its transactions on a connection of its own.
  const inbox = new DatabaseSync(file)
  const shop = new DatabaseSync(file)
  inbox.exec("pragma journal_mode = wal")
  return {
    store: sqliteStore(inbox),
    makeTables: async () => {
      shop.exec("create table if not exists shipments (number integer not null)")
    },
    ship: async (tx, order) => {
      tx.prepare("insert into shipments (number) values (?)").run(order)
    },
    shipments: async () =>
      shop
        .prepare("select number from shipments")
        .all()
        .map(({ number }) => Number(number))
  }
}
