import { connect, createServer, type Socket } from "node:net"
import { Pool, type PoolClient, type PoolConfig } from "pg"
import postgres from "postgres"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import type { NewEntry } from "../../src/receiver/entry.ts"
import { receiver } from "../../src/receiver/receiver.ts"
import { type Store, StoreUnavailable } from "../../src/receiver/store.ts"
import { postgresStore } from "../../src/receiver/stores/postgres.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { event, sender } from "./sender.ts"

/** A pool whose connections may break, also while they are closed. */
const poolOf = (config: PoolConfig): Pool => {
  const pool = new Pool(config)
  pool.on("error", () => undefined)
  pool.on("connect", (client) => client.on("error", () => undefined))
  return pool
}

const entry = (key: string): NewEntry => ({
  ...{ source: "shop", key, type: "invoice.paid", subject: undefined, version: undefined },
  ...{ at: undefined, headers: {}, contentType: "text/plain", body: Buffer.from("x") },
  keepMs: 60_000
})

/** ReadyForQuery, as the server ends its greeting. */
const ready = Buffer.from("Z\0\0\0\x05I")

const fields = "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
const farewell = Buffer.concat([
  Buffer.from("E\0\0\0"),
  Buffer.from([fields.length + 4]),
  Buffer.from(fields)
])

/** A way to the server on which bytes get lost from some moment on, like behind a firewall that has forgotten it. */
const network = async (to: number) => {
  let isSilent = false
  let isGoing = false
  const sockets = new Set<Socket>()
  const server = createServer((from) => {
    const onward = connect(to, "127.0.0.1")
    // Only the connections that there are fall silent: a new way is open.
    let isLost = false
    for (const [one, other] of [
      [from, onward],
      [onward, from]
    ] as const) {
      sockets.add(one)
      one.on("error", () => other.destroy())
      one.on("close", () => {
        if (!isLost) other.destroy()
      })
      one.on("data", (bytes: Buffer) => {
        isLost ||= isSilent
        const isGreeting = isGoing && one === onward && bytes.subarray(-6).equals(ready)
        if (!isLost) other.write(isGreeting ? Buffer.concat([bytes, farewell]) : bytes)
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("it has no port")
  return {
    port: address.port,
    /** Lets a server that shuts down take leave of each connection at once, with its greeting. */
    shutDown: () => {
      isGoing = true
    },
    fallSilent: () => {
      isSilent = true
    },
    recover: () => {
      isSilent = false
      isGoing = false
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

describe.skipIf(withoutPostgres !== undefined)("The inbox in a PostgreSQL with faults", () => {
  let server: PostgresServer | undefined
  let url = ""
  beforeAll(async () => {
    server = await startPostgres()
    url = await server.database("faults")
    const pool = poolOf({ connectionString: url })
    await postgresStore(pool).migrate()
    await pool.end()
  })
  afterAll(() => server?.stop())

  const errorOf = (asked: Promise<unknown>): Promise<unknown> =>
    asked.then(
      () => undefined,
      (error) => error
    )

  it("gives up connections that bring no answer, and so lives on when the network does", async () => {
    const way = await network(server?.port ?? 0)
    const pool = poolOf({
      ...{ host: "127.0.0.1", port: way.port, user: "postgres", database: "faults", max: 2 }
    })
    try {
      const { queue } = postgresStore(pool, { connectMs: 200, silentMs: 300 })
      await Promise.all([queue?.put([entry("s1")]), queue?.put([entry("s2")])])
      way.fallSilent()
      const lost = await Promise.all([
        ...[errorOf(Promise.resolve(queue?.put([entry("s3")])))],
        ...[errorOf(Promise.resolve(queue?.put([entry("s4"), entry("s5")])))]
      ])
      assert.isTrue(lost.every((error) => error instanceof StoreUnavailable))
      assert.match(`${lost[0]}`, /has not answered for 300 ms/)
      way.recover()
      assert.deepStrictEqual(await queue?.put([entry("s3")]), [{ isNew: true, receipts: 1 }])
    } finally {
      await pool.end()
      await way.close()
    }
  })

  it("answers 503 with Retry-After when no connection of the pool is free, and keeps no request", async () => {
    const pool = poolOf({ connectionString: url, max: 1 })
    try {
      const held = await pool.connect()
      const hooks = receiver({
        ...{ store: postgresStore(pool, { connectMs: 50 }), sources: { shop: sender() } },
        log: () => undefined
      })
      hooks.once("*", () => undefined)
      const post = (id: string) =>
        hooks.fetch("shop")(new Request("http://shop.test/in", event(id)))
      const answers = await Promise.all(["p1", "p2", "p3"].map(post))
      assert.deepStrictEqual(
        answers.map(({ headers, status }) => [status, headers.get("retry-after")]),
        Array(3).fill([503, "5"])
      )
      held.release()
      assert.strictEqual((await post("p1")).status, 200)
    } finally {
      await pool.end()
    }
  })

  it("gives work all that a transaction of the client `postgres` has, until it is over", async () => {
    const sql = postgres(url, { max: 2, onnotice: () => undefined })
    try {
      await sql`create table things (name text, tags text[], more jsonb)`
      const store = postgresStore(sql)
      const limits = { signal: new AbortController().signal, withinMs: 30_000 }
      let kept: postgres.TransactionSql | undefined
      const { outcome } = await store.once(
        entry("all-of-it"),
        async (tx) => {
          kept = tx
          const row = { name: "a", tags: tx.array(["x", "y"]), more: tx.json({ total: 1 }) }
          await tx`insert into things ${tx(row, "name", "tags", "more")}`
          await tx
            .savepoint(async (inner) => {
              await inner`insert into things (name) values ('b')`
              throw new Error("not this one")
            })
            .catch(() => undefined)
          for await (const [found] of tx`select name from things`.cursor())
            assert.deepStrictEqual(found, { name: "a" })
        },
        limits
      )
      assert.strictEqual(outcome, "done")
      assert.deepStrictEqual(
        [...(await sql`select * from things`)],
        [{ name: "a", tags: ["x", "y"], more: { total: 1 } }]
      )
      assert.throws(() => kept?.unsafe("delete from things"), /transaction of this work is over/)
      assert.throws(
        () => kept !== undefined && kept`delete from things`,
        /transaction of this work is over/
      )
    } finally {
      await sql.end()
    }
  })

  it("does not end with a server that shuts down while a connection to it is made", async () => {
    const way = await network(server?.port ?? 0)
    // As the manual says, and no more: an error that nobody hears ends the process.
    const pool = new Pool({
      ...{ host: "127.0.0.1", port: way.port, user: "postgres", database: "faults", max: 2 }
    })
    pool.on("error", () => undefined)
    try {
      const { queue } = postgresStore(pool)
      way.shutDown()
      assert.instanceOf(await errorOf(Promise.resolve(queue?.put([entry("g1")]))), StoreUnavailable)
      way.recover()
      assert.deepStrictEqual(await queue?.put([entry("g1")]), [{ isNew: true, receipts: 1 }])
    } finally {
      await pool.end()
      await way.close()
    }
  })

  it("leaves a server that has become a replica for one that takes writes", async () => {
    let connections = 0
    const pool = poolOf({ connectionString: url, max: 1 })
    // The first connection leads to what is a replica by now, all others to the new primary.
    pool.on("connect", (client) => {
      connections += 1
      if (connections === 1) void client.query("set default_transaction_read_only to on")
    })
    try {
      const { queue } = postgresStore(pool)
      assert.instanceOf(await errorOf(Promise.resolve(queue?.put([entry("r1")]))), StoreUnavailable)
      assert.deepStrictEqual(await queue?.put([entry("r1")]), [{ isNew: true, receipts: 1 }])
      assert.strictEqual(connections, 2)
    } finally {
      await pool.end()
    }
  })

  it("takes a commit whose answer is lost for unknown: the repeat is a duplicate", async () => {
    const way = await network(server?.port ?? 0)
    const pool = poolOf({
      ...{ host: "127.0.0.1", port: way.port, user: "postgres", database: "faults", max: 2 }
    })
    const direct = poolOf({ connectionString: url })
    try {
      await direct.query("create table effects (key text)")
      const store: Store<PoolClient> = postgresStore(pool, { silentMs: 300 })
      const limits = { signal: new AbortController().signal, withinMs: 30_000 }
      const work = async (tx: PoolClient) => {
        await tx.query("insert into effects values ('c1')")
      }
      // The server commits, and its answer gets lost.
      const committed = () =>
        vi.waitUntil(async () => (await direct.query("select 1 from effects")).rowCount === 1, {
          timeout: 20_000,
          interval: 2
        })
      const client = await pool.connect()
      const query = client.query.bind(client)
      client.query = ((text: string, ...rest: []) => {
        const asked = query(text, ...rest)
        if (text !== "commit") return asked
        return committed().then(() => {
          throw Object.assign(new Error("Connection terminated unexpectedly"), {})
        })
      }) as never
      client.release()
      assert.instanceOf(await errorOf(store.once(entry("c1"), work, limits)), StoreUnavailable)
      const repeated = await postgresStore(direct).once(entry("c1"), work, limits)
      assert.strictEqual(repeated.outcome, "duplicate")
      assert.strictEqual((await direct.query("select 1 from effects")).rowCount, 1)
    } finally {
      await pool.end()
      await direct.end()
      await way.close()
    }
  })

  it("needs no right to make tables once they are there, and says so where others lack", async () => {
    const owner = poolOf({ connectionString: url })
    const clerk = poolOf({ connectionString: url.replace("postgres@", "clerk@") })
    const nowhere = poolOf({ connectionString: url.replace(/faults$/, "nowhere") })
    const limits = { signal: new AbortController().signal, withinMs: 30_000 }
    const once = (pool: Pool) =>
      postgresStore(pool).once(entry("rights"), async () => undefined, limits)
    try {
      await owner.query("create role clerk login")
      await owner.query("revoke create on schema public from public")
      assert.match(String(await errorOf(once(clerk))), /^StoreUnavailable.*permission denied/)
      await owner.query("grant select on petrel_inbox_schema to clerk")
      const tables = "petrel_inbox, petrel_inbox_versions"
      await owner.query(`grant select, insert, update, delete on ${tables} to clerk`)
      await postgresStore(clerk).migrate()
      assert.deepStrictEqual(await once(clerk), { outcome: "done" })
      assert.match(
        String(await errorOf(once(nowhere))),
        /^StoreUnavailable.*"nowhere" does not exist/
      )
    } finally {
      await owner.end()
      await clerk.end()
      await nowhere.end()
    }
  })

  it("says that a table of that name is another program's", async () => {
    const pool = poolOf({ connectionString: url })
    const client = postgres(url, { max: 1, onnotice: () => undefined })
    const limits = { signal: new AbortController().signal, withinMs: 30_000 }
    const advice = /^StoreUnavailable.*"others" already exists: it is another program's/
    try {
      await pool.query("create table others (id int primary key, event text)")
      await pool.query("create table numbered_schema (id int primary key)")
      for (const store of [
        (table: string) => postgresStore(pool, { table }),
        (table: string) => postgresStore(client, { table })
      ]) {
        assert.match(String(await errorOf(store("others").migrate())), advice)
        assert.match(
          String(await errorOf(store("numbered").migrate())),
          /^StoreUnavailable.*the table numbered_schema does not have the column/
        )
      }
      await pool.query("alter table others rename to their_own")
      const store = postgresStore(pool, { table: "others" })
      await store.migrate()
      assert.deepStrictEqual(await store.once(entry("first"), async () => undefined, limits), {
        outcome: "done"
      })
    } finally {
      await pool.end()
      await client.end()
    }
  })
})
