import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Pool } from "pg"
import { receiver } from "../../../src/receiver/receiver.ts"
import { postgresStore } from "../../../src/receiver/stores/postgres.ts"
import { sender } from "../sender.ts"

/*
 * A receiver that is killed. Its work inserts into `effects` within the transaction that it gets. Tells its parent
 * the port that it listens at. With PETREL_TEST_KILL_AT it kills itself at that step, the second time.
 */

const { PETREL_TEST_DATABASE = "", PETREL_TEST_KILL_AT } = process.env

const pool = new Pool({ connectionString: PETREL_TEST_DATABASE, max: 30 })
// The pool drops the connection; without a listener the process would end.
pool.on("error", () => undefined)

let passed = 0
const hooks = receiver({
  store: postgresStore(pool),
  sources: { shop: sender() },
  subject: ({ data }) => data.data.subject,
  failpoint: (step) => {
    if (step !== PETREL_TEST_KILL_AT) return
    passed += 1
    if (passed === 2) process.kill(process.pid, "SIGKILL")
  },
  log: () => undefined
})

const effect = "insert into effects (key, subject, number) values ($1, $2, $3)"

hooks.once("quick.*", async (tx, { data, key }) => {
  await tx.query(effect, [key, null, data.data.number])
})

hooks.process(
  "slow.*",
  async (tx, { attempt, data, key, subject }) => {
    await tx.query(effect, [key, subject, data.data.number])
    // What fails after its effect must take it back.
    if (data.data.fails && attempt === 1) throw new Error("it fails the first time")
  },
  { attempts: 100, backoffMs: () => 20 }
)

hooks.start({ concurrency: 8, pollMs: 50, leaseMs: 1_000 })
const server = createServer(hooks.node("shop"))
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port))
