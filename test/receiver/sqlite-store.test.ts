import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { receiver } from "../../src/receiver/receiver.ts"
import type { Store } from "../../src/receiver/store.ts"
import { sqliteStore } from "../../src/receiver/stores/sqlite.ts"
import { conformance } from "./conformance.ts"
import { event, sender } from "./sender.ts"

conformance("The inbox in SQLite through node:sqlite", undefined, async () => {
  const folder = await mkdtemp(join(tmpdir(), "petrel-test-sqlite-"))
  const file = join(folder, "inbox.db")
  const database = new DatabaseSync(file)
  database.exec("pragma journal_mode = wal; pragma synchronous = off")
  database.exec("create table counters (name text primary key, n integer not null) strict")
  // As another process of the machine.
  const reader = new DatabaseSync(file)
  const store: Store<DatabaseSync> = sqliteStore(database)
  return {
    store,
    // On such a conflict, the database rolls the whole transaction back.
    failQuietly: async (tx) => {
      try {
        tx.prepare("insert or rollback into counters values (null, 1)").run()
      } catch {}
    },
    add: async (tx, name) => {
      tx.prepare(
        "insert into counters values (?, 1) on conflict (name) do update set n = n + 1"
      ).run(name)
    },
    countOf: async (name) =>
      Number(reader.prepare("select n from counters where name = ?").get(name)?.n ?? 0),
    close: async () => {
      database.close()
      reader.close()
      await rm(folder, { recursive: true, force: true })
    }
  }
})

describe("The inbox in an SQLite file that processes share", () => {
  it("does the work once, and gives each event to one claim", async () => {
    const folder = await mkdtemp(join(tmpdir(), "petrel-test-sqlite-"))
    // A connection each, as in processes of their own.
    const databases = Array.from({ length: 3 }, () => new DatabaseSync(join(folder, "inbox.db")))
    const stores = databases.map((database) => sqliteStore(database))
    try {
      await Promise.all(stores.map((store) => store.migrate()))
      databases[0]?.exec("create table effects (key text)")
      const keys = Array.from({ length: 10 }, (_, at) => `key-${at}`)
      const entry = (key: string) => ({
        ...{ source: "shop", key, type: "paid", subject: undefined, version: undefined },
        ...{ at: undefined, headers: {}, contentType: "text/plain", keepMs: 60_000 },
        body: Buffer.from("x")
      })
      const outcomes = await Promise.all(
        stores.flatMap((store) =>
          keys.map((key) =>
            store.once(
              entry(key),
              async (tx) => {
                tx.prepare("insert into effects values (?)").run(key)
                await setImmediate()
              },
              { signal: new AbortController().signal, withinMs: 30_000 }
            )
          )
        )
      )
      assert.lengthOf(
        outcomes.filter(({ outcome }) => outcome === "done"),
        keys.length
      )
      const [effects] = databases[1]?.prepare("select count(*) as n from effects").all() ?? []
      assert.strictEqual(effects?.n, keys.length)
      await Promise.all(
        stores.map((store, at) => store.queue?.put(keys.map((key) => entry(`${at}-${key}`))))
      )
      const claims = await Promise.all(
        stores.map((store) => store.queue?.claim(["shop"], 20, 60_000))
      )
      const claimed = claims.flatMap((all) => all?.map(({ key }) => key) ?? [])
      assert.lengthOf(claimed, 30)
      assert.strictEqual(new Set(claimed).size, 30)
    } finally {
      for (const database of databases) database.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe("The inbox in SQLite behind work that does not end", () => {
  it("says so in time, stores nothing of what did not wait, and goes on when the work has ended", async () => {
    const store = sqliteStore(new DatabaseSync(":memory:"), { turnMs: 20 })
    await store.migrate()
    const entry = (key: string) => ({
      ...{ source: "shop", key, type: "paid", subject: undefined, version: undefined },
      ...{ at: undefined, headers: {}, contentType: "text/plain", keepMs: 60_000 },
      body: Buffer.from("x")
    })
    const limits = { signal: new AbortController().signal, withinMs: 30_000 }
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const hung = store.once(entry("hung"), () => ended, limits)
    const refused = await Promise.all(
      ["a", "b", "c"].map((key) => store.queue?.put([entry(key)]).catch((error: Error) => error))
    )
    for (const error of refused)
      assert.match(`${error}`, /StoreUnavailable: SQLite: the work before .* not ended for 20 ms/)
    end()
    assert.deepStrictEqual(await hung, { outcome: "done" })
    assert.deepStrictEqual(await store.known("shop", ["hung", "a", "b", "c"]), new Set(["hung"]))
    assert.deepStrictEqual(await store.queue?.put([entry("a")]), [{ isNew: true, receipts: 1 }])
  })
})

describe("The version of the tables of an inbox", () => {
  const put = { method: "POST", body: "x" }
  const told = async (change: string): Promise<string> => {
    const database = new DatabaseSync(":memory:")
    await sqliteStore(database).migrate()
    database.exec(change)
    const lines: Array<string> = []
    const hooks = receiver({
      ...{ store: sqliteStore(database), sources: { shop: sender() } },
      log: ({ error }) => lines.push(`${error}`.replace("StoreUnavailable: ", ""))
    })
    hooks.process("*", () => undefined)
    const { status } = await hooks.fetch("shop")(
      new Request("http://shop.test/in", { ...put, ...event("evt_1") })
    )
    assert.strictEqual(status, 503)
    // As the loop says when it starts, of a program that gets no requests.
    hooks.start()
    await setImmediate()
    await hooks.stop()
    assert.isAtLeast(lines.length, 2)
    assert.strictEqual(new Set(lines).size, 1)
    return lines[0] ?? ""
  }

  it("is looked at before anything is stored, and what to do is said in a sentence", async () => {
    const older = /missing or of an older version: run `petrel inbox migrate` or `await hooks/
    assert.match(await told("delete from petrel_inbox_schema"), older)
    assert.match(await told("drop table petrel_inbox_schema"), older)
    assert.match(
      await told("insert into petrel_inbox_schema values (99)"),
      /of version 99, and this program's petrel knows 1: update the package petrel/
    )
  })

  it("says that a table of that name is another program's", async () => {
    const database = new DatabaseSync(":memory:")
    database.exec("create table others (id int)")
    const refused = await sqliteStore(database, { table: "others" })
      .migrate()
      .catch((error: Error) => `${error}`)
    assert.match(`${refused}`, /^StoreUnavailable.*others already exists: it is another program's/)
  })

  it("is not lowered by an older program", async () => {
    const database = new DatabaseSync(":memory:")
    const store = sqliteStore(database)
    await store.migrate()
    database.exec("insert into petrel_inbox_schema values (99)")
    const refused = await sqliteStore(database)
      .migrate()
      .catch((error: Error) => error.message)
    assert.match(`${refused}`, /of version 99/)
  })
})

it("refuses a table with a schema", () => {
  assert.throws(
    () => sqliteStore(new DatabaseSync(":memory:"), { table: "a.b" }),
    /without a schema/
  )
  assert.throws(
    () => sqliteStore(new DatabaseSync(":memory:"), { table: "a b" }),
    /letters, digits/
  )
})
