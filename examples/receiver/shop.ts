/*
 * A shop that ships an order once it is paid. It is told so by a webhook, and dies where SHOP_DIES says, as if the power
 * failed: no handler runs, no transaction is ended.
 */
import { createServer } from "node:http"
import process from "node:process"
import { petrel, receiver } from "petrel/receiver"
import type { ShopDatabase } from "./database.ts"

const {
  DATABASE_URL,
  PORT = "3000",
  SHOP_DIES,
  SHOP_FILE = "shop.db",
  WEBHOOK_SECRET = ""
} = process.env

const die = (moment: string): void => {
  if (SHOP_DIES !== moment) return
  console.log(`dies ${moment}`)
  process.kill(process.pid, "SIGKILL")
}

const serve = async <Tx>(database: ShopDatabase<Tx>): Promise<void> => {
  const hooks = receiver({
    store: database.store,
    sources: { petrel: petrel({ secrets: [WEBHOOK_SECRET] }) },
    log: ({ outcome, text }) => {
      if (outcome === "done") die("after the commit, before the answer")
      console.log(text)
    }
  })

  hooks.once("invoice.paid", async (tx, event) => {
    await database.ship(tx, event.data.order)
    console.log(`ships order ${event.data.order}`)
    die("before the commit")
  })

  await database.makeTables()
  await hooks.migrate()
  const receive = hooks.node("petrel")
  const server = createServer((request, response) => {
    if (request.method === "GET")
      database.shipments().then(
        (shipments) => response.end(JSON.stringify(shipments)),
        (error) => response.writeHead(500).end(`${error}`)
      )
    else receive(request, response)
  })
  server.listen(Number(PORT), "127.0.0.1", () => console.log("listens"))
}

if (DATABASE_URL === undefined) await serve((await import("./sqlite.ts")).openSqlite(SHOP_FILE))
else await serve((await import("./postgres.ts")).openPostgres(DATABASE_URL))
