import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { type Runtime, runModule } from "../kit/runtimes.ts"

/** Where the program keeps its inbox: what it imports and opens, and how its work counts an effect in the transaction. */
const stores = {
  memory: {
    open: "const store = memoryStore()",
    effect: "",
    count: "0"
  },
  sqlite: {
    open: `import { DatabaseSync } from "node:sqlite"
const database = new DatabaseSync("receive.db")
database.exec("drop table if exists effects; create table effects (key text)")
const store = sqliteStore(database, { table: "inbox_" + Date.now() })`,
    effect: 'tx.prepare("insert into effects values (?)").run(event.key)',
    count: 'database.prepare("select count(*) as n from effects").get().n'
  },
  postgres: {
    open: `import pg from "pg"
const pool = new pg.Pool({ connectionString: process.argv[2] })
await pool.query("drop table if exists effects")
await pool.query("create table effects (key text)")
const store = postgresStore(pool, { table: "inbox_" + Date.now() })`,
    effect: 'await tx.query("insert into effects values ($1)", [event.key])',
    count: '(await pool.query("select count(*)::int as n from effects")).rows[0].n'
  }
}

export type InstalledStore = keyof typeof stores

/** A program that receives webhooks with the installed package, through a real socket, and prints what it did. */
const program = ({
  count,
  effect,
  open
}: (typeof stores)[InstalledStore]) => `import { createHmac } from "node:crypto"
import { createServer } from "node:http"
import { memoryStore, petrel, postgresStore, receiver, sqliteStore } from "petrel/receiver"
${open}
const key = Buffer.from("a secret of the tests of the kit")
const hooks = receiver({
  store,
  sources: { petrel: petrel({ secrets: ["whsec_" + key.toString("base64")] }) },
  log: () => undefined
})
const effects = []
let worked
const isWorked = new Promise((resolve) => { worked = resolve })
hooks.once("invoice.paid", async (tx, event) => {
  ${effect}
  effects.push(event.key + " " + event.data.total)
})
hooks.process("invoice.voided", async (tx, event) => {
  ${effect}
  effects.push(event.key)
  worked()
})
await hooks.migrate()
hooks.start()
const server = createServer(hooks.node("petrel"))
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
const post = async (id, type, key) => {
  const [at, body] = [String(Math.floor(Date.now() / 1000)), '{"total":12}']
  const signature = createHmac("sha256", key).update(id + "." + at + "." + body).digest("base64")
  const headers = {
    "webhook-id": id, "webhook-timestamp": at, "webhook-signature": "v1," + signature,
    "webhook-event-type": type, "content-type": "application/json"
  }
  const response = await fetch("http://127.0.0.1:" + server.address().port, { method: "POST", body, headers })
  return response.status + " " + (await response.text()).trim()
}
const answers = [
  await post("e1", "invoice.paid", key), await post("e1", "invoice.paid", key),
  await post("e2", "invoice.voided", key), await post("e3", "invoice.paid", Buffer.from("another"))
]
await isWorked
await hooks.stop()
const { byState } = await hooks.stats()
console.log(JSON.stringify({ answers, effects, done: byState.done, stored: ${count} }))
process.exit(0)
`

/** What it prints. */
export const receivedOnce = {
  answers: ["200 done", "200 duplicate", "200 stored", "401 signature-mismatch"],
  effects: ["e1 12", "e2"],
  done: 2,
  stored: 0
}

/**
 * Runs it in a project in which the package is installed.
 *
 * @param url of the database, where the store is in PostgreSQL.
 */
export const receiveInstalled = async (
  runtime: Runtime,
  project: string,
  store: InstalledStore = "memory",
  url = ""
): Promise<unknown> => {
  await writeFile(join(project, "receive.js"), program(stores[store]))
  return runModule(runtime, project, "receive.js", url)
}

/** A program that enqueues an event in a transaction of `pg`, and another one in one that it rolls back. */
const enqueuing = `import pg from "pg"
import { enqueue } from "petrel/outbox"
const client = new pg.Client({ connectionString: process.argv[2] })
await client.connect()
const body = { total: 12 }
await client.query("begin")
const kept = await enqueue(client, { tenant: "acme", type: "invoice.paid", body })
await client.query("commit")
await client.query("begin")
const gone = await enqueue(client, { tenant: "acme", type: "invoice.voided", body })
await client.query("rollback")
const { rows } = await client.query("select type, convert_from(body, 'UTF8') as body from petrel_outbox where event_id in ($1, $2)", [kept, gone])
await client.end()
console.log(JSON.stringify(rows))
`

/** What it prints: what the outbox has of both. */
export const enqueued = [{ type: "invoice.paid", body: '{"total":12}' }]

export const enqueueInstalled = async (
  runtime: Runtime,
  project: string,
  url: string
): Promise<unknown> => {
  await writeFile(join(project, "enqueue.js"), enqueuing)
  return runModule(runtime, project, "enqueue.js", url)
}
