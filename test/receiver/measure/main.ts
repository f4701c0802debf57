/*
 * `npm run measure:receiver`: what the receiver's kit costs, with a real PostgreSQL. Prints medians and 95th
 * percentiles in ms, and of verification in µs; exits with 1 if `once` adds more than 1 ms, a claim takes more than 2 ms,
 * or verifying more than 40 µs in the median.
 */
import { Pool } from "pg"
import type { NewEntry } from "../../../src/receiver/entry.ts"
import { postgresStore } from "../../../src/receiver/stores/postgres.ts"
import { startPostgres } from "../../kit/postgres-server.ts"
import { event, sender } from "../sender.ts"

const rounds = 2_000
const doneRows = 1_000_000
const blockedRows = 10_000

const percentiles = (times: ReadonlyArray<number>) => {
  const sorted = [...times].sort((a, b) => a - b)
  const at = (share: number) => Number((sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(3))
  return { p50: at(0.5), p95: at(0.95) }
}

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await run()
  return performance.now() - began
}

const signal = new AbortController().signal
const entry = (key: string): NewEntry => ({
  ...{ source: "shop", key, type: "invoice.paid", subject: "cus_1", version: undefined },
  ...{ at: Date.now(), headers: { "content-type": "application/json" } },
  ...{ contentType: "application/json", body: Buffer.alloc(1_024, "x"), keepMs: 86_400_000 }
})

const server = await startPostgres({ shared_buffers: "256MB" })
const pool = new Pool({ connectionString: server.url })
// The server stops before its last connection is closed.
pool.on("error", () => undefined)
try {
  const store = postgresStore(pool)
  const { queue } = store
  if (queue === undefined) throw new Error("the store has a queue")
  await store.migrate()
  await pool.query("create table orders (id bigint generated always as identity, key text)")
  const effect = "insert into orders (key) values ($1)"

  /** What a program does without the kit. */
  const byItself = async (key: string) => {
    const client = await pool.connect()
    try {
      await client.query("begin")
      await client.query(effect, [key])
      await client.query("commit")
    } finally {
      client.release()
    }
  }
  const withOnce = (key: string) =>
    store.once(entry(key), (tx) => tx.query(effect, [key]).then(() => undefined), {
      signal,
      withinMs: 30_000
    })
  const own: Array<number> = []
  const once: Array<number> = []
  // In turn, so that both meet the same machine.
  for (let at = -100; at < rounds; at++) {
    const [a, b] = [await timed(() => byItself(`a${at}`)), await timed(() => withOnce(`b${at}`))]
    if (at < 0) continue
    own.push(a)
    once.push(b)
  }

  await pool.query(`insert into petrel_inbox (source, event_key, type, subject, state, next_at, headers,
      content_type, body_hash, received_at, finished_at, expires_at)
    select 'shop', 'done-' || n, 'invoice.paid', 'cus_' || n % 1000, 'done', n, '{}', 'application/json',
      md5(n::text), n, n, 4000000000000 from generate_series(1, ${doneRows}) n`)
  await pool.query("vacuum analyze petrel_inbox")
  const claimed: Array<number> = []
  for (let at = 0; at < 500; at++) {
    await queue.put([{ ...entry(`c${at}`), subject: `claim_${at}` }])
    claimed.push(await timed(() => queue.claim(["shop"], 8, 3_600_000)))
  }
  const idle: Array<number> = []
  for (let at = 0; at < 500; at++) idle.push(await timed(() => queue.claim(["shop"], 8, 3_600_000)))

  await pool.query(`insert into petrel_inbox (source, event_key, type, subject, state, next_at, headers,
      content_type, body_hash, received_at, expires_at)
    select 'shop', 'blocked-' || n, 'invoice.paid', 'cus_stuck', 'received', n, '{}', 'application/json',
      md5(n::text), n, 4000000000000 from generate_series(1, ${blockedRows}) n`)
  // Their oldest waits for a retry.
  await pool.query("update petrel_inbox set next_at = 4000000000000 where event_key = 'blocked-1'")
  await pool.query("analyze petrel_inbox")
  const blocked: Array<number> = []
  for (let at = 0; at < 200; at++) blocked.push(await timed(() => queue.claim(["shop"], 8, 1_000)))

  const beside: Array<number> = []
  for (let at = 0; at < 200; at++) beside.push(await timed(() => queue.claim(["bank"], 4, 1_000)))

  const provider = sender()
  const request = event("evt_1", "invoice.paid", { text: "x".repeat(940) })
  const received = {
    ...{ method: "POST", url: "https://shop.test/in", headers: request.headers },
    body: Buffer.from(request.body)
  }
  const verified: Array<number> = []
  for (let at = 0; at < 5_000; at++)
    verified.push(await timed(async () => provider.verify(received, Date.now())))

  const onceAddsMs = percentiles(once.map((ms, at) => ms - (own[at] ?? 0)))
  const claimWithMillionDoneMs = percentiles(claimed)
  const verifyOneKilobyteMicros = percentiles(verified.slice(500).map((ms) => ms * 1_000))
  const figures = {
    transactionMs: percentiles(own),
    withOnceMs: percentiles(once),
    onceAddsMs,
    claimWithMillionDoneMs,
    idleClaimMs: percentiles(idle),
    claimWithTenThousandBlockedMs: percentiles(blocked),
    claimOfAnotherSourceBesideThemMs: percentiles(beside),
    verifyOneKilobyteMicros
  }
  console.log(JSON.stringify(figures, null, 2))
  // What the kit promises.
  if (onceAddsMs.p50 > 1 || claimWithMillionDoneMs.p50 > 2 || verifyOneKilobyteMicros.p50 > 40)
    process.exitCode = 1
} finally {
  await pool.end()
  await server.stop()
}
