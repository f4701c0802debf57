import { createPool, type Pool } from "mysql2/promise"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { NewEntry } from "../../src/receiver/entry.ts"
import type { Queue } from "../../src/receiver/store.ts"
import { mysqlStore } from "../../src/receiver/stores/mysql.ts"
import { type MariadbServer, startMariadb, withoutMariadb } from "../kit/mariadb-server.ts"

const entry = (key: string): NewEntry => ({
  ...{ source: "shop", key, type: "invoice.paid", subject: undefined, version: undefined },
  ...{ at: undefined, headers: {}, contentType: "text/plain", body: Buffer.from("x") },
  keepMs: 60_000
})

const limits = { signal: new AbortController().signal, withinMs: 30_000 }

const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error
  )

describe.skipIf(withoutMariadb !== undefined)("The inbox in MariaDB", () => {
  let server: MariadbServer
  let pool: Pool

  beforeAll(async () => {
    // Clocks are put back on 2025-10-26 at 01:00 UTC: local times from 02:00 to 03:00 come twice.
    server = await startMariadb({ timeZone: "CET-1CEST,M3.5.0,M10.5.0/3" })
    pool = createPool({ uri: server.url, connectionLimit: 1 })
  })

  afterAll(async () => {
    await pool.end()
    await server.stop()
  })

  it("keeps its times when the server's local clock is put back", async () => {
    const store = mysqlStore(pool)
    const queue = store.queue as Queue<unknown>
    const setClock = (time: string) => pool.query(`set timestamp = ${Date.parse(time) / 1_000}`)
    const claimed = async () => (await queue.claim(["shop"], 10, 30_000)).map(({ key }) => key)
    await store.migrate()
    await setClock("2025-10-25T23:59:59Z")
    await queue.put([entry("claimed")])
    assert.deepStrictEqual(await claimed(), ["claimed"])
    await setClock("2025-10-26T00:00:01Z")
    assert.deepStrictEqual(await claimed(), [], "its lease has 28 s left")
    await setClock("2025-10-26T00:59:59Z")
    assert.deepStrictEqual(await claimed(), ["claimed"])
    await queue.put([entry("stored")])
    await setClock("2025-10-26T01:00:01Z")
    assert.deepStrictEqual(await claimed(), ["stored"], "it is due since 2 s")
    await pool.query("set timestamp = default")
  })

  it("says that a table of that name is another program's, instead of passing it over", async () => {
    await pool.query("create table others (id int not null primary key, event varchar(100))")
    const store = mysqlStore(pool, { table: "others" })
    const advice = /^StoreUnavailable.*the table others is missing, or does not have the columns/
    assert.match(String(await errorOf(store.migrate())), advice)
    assert.match(String(await errorOf(store.migrate())), advice, "still")
    await pool.query("rename table others to their_own")
    await store.migrate()
    assert.deepStrictEqual(await store.once(entry("first"), async () => undefined, limits), {
      outcome: "done"
    })
  })

  it("commits what it does and reads what is new, though `autocommit` is off", async () => {
    await mysqlStore(pool).migrate()
    await pool.query("set global autocommit = 0")
    const [one, other] = [server.url, server.url].map((uri) =>
      createPool({ uri, connectionLimit: 1 })
    ) as [Pool, Pool]
    const [mine, theirs] = [mysqlStore(one), mysqlStore(other)]
    const queue = mine.queue as Queue<unknown>
    try {
      // What a program reads begins a transaction on a connection that it gives back.
      await one.query("select 1 from petrel_inbox")
      assert.deepStrictEqual(await mine.once(entry("read"), async () => undefined, limits), {
        outcome: "done"
      })
      assert.deepStrictEqual([...(await theirs.known("shop", ["later"]))], [])
      await mine.once(entry("later"), async () => undefined, limits)
      assert.deepStrictEqual([...(await theirs.known("shop", ["later"]))], ["later"])
      await queue.put([entry("failing")])
      const claimed = (await queue.claim(["shop"], 10, 30_000)).find(({ key }) => key === "failing")
      if (claimed === undefined) throw new Error("it is to be claimed")
      await queue.fail(claimed, { kind: "retry", delayMs: 60_000, error: "refused" })
      const [seen] = (await theirs.queue?.list({ limit: 1 })) ?? []
      assert.deepInclude(seen, { key: "failing", error: "refused" })
    } finally {
      await pool.query("set global autocommit = 1")
      await one.end()
      await other.end()
    }
  })

  it("reads rows that the program's pool has as arrays, and refuses one that has not all letters", async () => {
    await mysqlStore(pool).migrate()
    const arrays = createPool({ uri: server.url, rowsAsArray: true })
    const latin = createPool({ uri: server.url, charset: "latin1" })
    try {
      const store = mysqlStore(arrays)
      await store.once(entry("größer Ж"), async () => undefined, limits)
      assert.deepStrictEqual([...(await store.known("shop", ["größer Ж"]))], ["größer Ж"])
      const advice = /^StoreUnavailable.*charset latin1.*`charset: "utf8mb4"`/
      const letters = mysqlStore(latin)
      assert.match(String(await errorOf(letters.known("shop", ["größer Ж"]))), advice)
      assert.match(String(await errorOf(letters.migrate())), advice)
    } finally {
      await arrays.end()
      await latin.end()
    }
  })

  it("is unavailable to a user who may not use it, and where its database is missing", async () => {
    await mysqlStore(pool).migrate()
    // The server checks rights from now on.
    await pool.query("flush privileges")
    await pool.query("create user clerk@'127.0.0.1'")
    await pool.query("grant select on shop.* to clerk@'127.0.0.1'")
    const tryAs = async (url: string) => {
      const other = createPool(url)
      const tried = mysqlStore(other).once(entry("rights"), async () => undefined, limits)
      const error = await errorOf(tried)
      await other.end()
      return String(error)
    }
    const clerk = server.url.replace("root@", "clerk@")
    assert.match(await tryAs(clerk), /^StoreUnavailable.*command denied/)
    assert.match(await tryAs(clerk.replace(/shop$/, "nowhere")), /^StoreUnavailable.*nowhere/)
    const stranger = server.url.replace("root@", "nobody:wrong@")
    assert.match(await tryAs(stranger), /^StoreUnavailable.*Access denied/)
  })
})
