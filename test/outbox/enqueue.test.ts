import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import pg from "pg"
import postgres from "postgres"
import { afterAll, beforeAll } from "vitest"
import { isToken } from "../../src/domain/token.ts"
import { eventTypeProblem } from "../../src/domain/type-filter.ts"
import { enqueue, enqueueAll, maxBodyBytes, type OutboxEvent } from "../../src/outbox/outbox.ts"
import { readTable } from "../../src/outbox/table-name.ts"
import {
  firstOutboxDatabase,
  inPg,
  inPostgres,
  migrate,
  outboxDatabase,
  withClient
} from "../kit/outbox.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"

const paid: OutboxEvent = { tenant: "acme", type: "invoice.paid", body: { total: "10.00" } }

interface Stored {
  readonly tenant: string
  readonly event_id: string
  readonly type: string
  readonly content_type: string
  readonly body: Buffer
  readonly traceparent: string | null
}

const storedIn = (url: string, table = "petrel_outbox") =>
  withClient(url, async (client) => {
    const { rows } = await client.query<Stored>(`select * from ${table} order by id`)
    return rows
  })

/** Returns the message of what a promise is rejected with; "" if it is not. */
const refusal = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "",
    (error: unknown) => (error instanceof Error ? error.message : String(error))
  )

describe("what enqueue refuses", () => {
  /** No statement reaches this. */
  const tx = { query: () => Promise.reject(new Error("a statement was run")) }
  const refused = (event: unknown) => refusal(enqueue(tx, event as OutboxEvent))

  it("is what could never be an event, in one sentence and before a statement runs", async () => {
    const big = "x".repeat(maxBodyBytes + 1)
    for (const [event, sentence] of [
      [
        { ...paid, tenant: "a b" },
        'the tenant "a b" must be 1 to 64 letters, digits, - or _ (and not a lone _)'
      ],
      [{ ...paid, tenant: undefined }, "the tenant must be a string: it is undefined"],
      [{ ...paid, type: "" }, "the type is missing"],
      [
        { ...paid, type: "invoice..paid" },
        `the type's token "" must be 1 to 64 letters, digits, - or _`
      ],
      [
        { ...paid, type: "petrel.alert.x" },
        "types whose first token is petrel belong to Petrel's own events: choose another"
      ],
      [
        { ...paid, id: "a b" },
        'the id "a b" must be 1 to 128 printable ASCII characters without spaces'
      ],
      [{ ...paid, id: 7 }, "the id must be a string: it is number"],
      [
        { ...paid, contentType: "a\nb" },
        "the content type must be 1 to 255 printable ASCII characters"
      ],
      [
        { ...paid, traceparent: "00" },
        "traceparent is not of the form that W3C Trace Context gives it"
      ],
      [{ ...paid, body: undefined }, "the body is missing: give bytes, a text or a value"],
      [{ ...paid, body: 10n }, /^the body cannot be written as JSON: .*BigInt/],
      [
        { ...paid, body: big },
        "the body has 972801 bytes, more than the 972800 that an event may have: publish a link to the data instead"
      ]
    ] as const) {
      const said = await refused(event)
      if (typeof sentence === "string") assert.strictEqual(said, sentence)
      else assert.match(said, sentence)
    }
    assert.strictEqual(await refused(paid), "a statement was run")
  })

  it("is what is no transaction", async () => {
    const pool = new pg.Pool()
    const sql = postgres({ max: 1 })
    assert.match(await refusal(enqueue(pool, paid)), /^this is a pool, not a transaction: /)
    assert.match(await refusal(enqueue(sql, paid)), /^this is the client, not a transaction: /)
    assert.match(await refusal(enqueue({} as never, paid)), /^the first argument must be a trans/)
    assert.match(
      await refusal(enqueue(tx, paid, { table: 'a"b' })),
      /^table must be a table such as petrel_outbox/
    )
  })
})

describe("the name of an outbox", () => {
  it("is a table, with or without a schema", () => {
    assert.deepInclude(readTable("a_b"), { quoted: '"a_b"', base: "a_b" })
    assert.deepInclude(readTable("Ab.c1"), { quoted: '"Ab"."c1"', base: "c1" })
    for (const text of ["", "1a", "a.b.c", 'a"b', "a;b", "a".repeat(41), "a."])
      assert.isUndefined(readTable(text), text)
  })
})

describe.skipIf(withoutPostgres !== undefined)("an outbox in PostgreSQL", () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  for (const [driver, inTransaction] of [
    ["pg", inPg],
    ["postgres", inPostgres]
  ] as const)
    describe(`of a program that uses ${driver}`, () => {
      it("has what a transaction that committed has enqueued, byte for byte", async () => {
        const url = await outboxDatabase(server)
        const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
        const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`
        const ids = await inTransaction(url, async (tx) => [
          await enqueue(tx, { ...paid, id: "inv_1:paid", traceparent }),
          await enqueue(tx, { ...paid, body: bytes, contentType: "application/octet-stream" }),
          ...(await enqueueAll(tx, [{ ...paid, tenant: "globex", body: "é" }, paid]))
        ])
        const rows = await storedIn(url)
        assert.deepStrictEqual(
          rows.map(({ event_id }) => event_id),
          ids
        )
        assert.deepInclude(rows[0], {
          ...{ tenant: "acme", event_id: "inv_1:paid", type: "invoice.paid", traceparent },
          content_type: "application/json"
        })
        assert.strictEqual(rows[0]?.body.toString(), '{"total":"10.00"}')
        assert.deepStrictEqual(new Uint8Array(rows[1]?.body ?? []), bytes)
        assert.strictEqual(rows[2]?.body.toString(), "é")
        assert.strictEqual(new Set(ids).size, 4)
      })

      it("has nothing of a transaction that is rolled back", async () => {
        const url = await outboxDatabase(server)
        const rolledBack = inTransaction(url, async (tx) => {
          await enqueue(tx, paid)
          throw new Error("rolled back")
        })
        assert.strictEqual(await refusal(rolledBack), "rolled back")
        assert.lengthOf(await storedIn(url), 0)
      })

      it("has one event for an id, and refuses another event with it", async () => {
        const url = await outboxDatabase(server)
        const one = { ...paid, id: "inv_1" }
        await inTransaction(url, (tx) => enqueue(tx, one))
        assert.strictEqual(await inTransaction(url, (tx) => enqueue(tx, one)), "inv_1")
        await inTransaction(url, (tx) => enqueue(tx, { ...one, tenant: "globex" }))
        assert.lengthOf(await storedIn(url), 2)
        const other = inTransaction(url, (tx) => enqueue(tx, { ...one, body: "other" }))
        assert.strictEqual(
          await refusal(other),
          'the id "inv_1" of acme is taken by another event: choose another id'
        )
      })

      it("takes thousands of events with few statements", async () => {
        const url = await outboxDatabase(server)
        const events = Array.from({ length: 2_500 }, (_, index) => ({ ...paid, id: `${index}` }))
        const ids = await inTransaction(url, (tx) => enqueueAll(tx, events))
        assert.deepStrictEqual(
          (await storedIn(url)).map(({ event_id }) => event_id),
          ids
        )
      })
    })

  it("refuses a client that has no transaction open", async () => {
    const url = await outboxDatabase(server)
    await withClient(url, async (client) => {
      await client.query("select 1")
      assert.match(await refusal(enqueue(client, paid)), /^this client has no transaction open: /)
    })
  })

  it("may be in a schema, with a name of its own, and be migrated again", async () => {
    const url = await server.database("of_a_schema")
    await withClient(url, async (client) => {
      await client.query("create schema billing")
      await migrate(client, "billing.Events")
      await migrate(client, "billing.Events")
    })
    await inPg(url, (tx) => enqueue(tx, paid, { table: "billing.Events" }))
    assert.lengthOf(await storedIn(url, 'billing."Events"'), 1)
  })

  it("of version 1 is mended when it is migrated: rows get their tracestate", async () => {
    const url = await firstOutboxDatabase(server)
    const enqueued = (id: string, tracestate?: string) =>
      inPg(url, (tx) => enqueue(tx, { ...paid, id, tracestate }))
    await enqueued("before")
    assert.match(await refusal(enqueued("one", "petrel=1")), /^invalid regular expression: /)
    await withClient(url, (client) => migrate(client))
    await enqueued("one", `petrel=${"~".repeat(505)}`)
    assert.lengthOf(await storedIn(url), 2)
    await withClient(url, async (client) => {
      const text =
        "insert into petrel_outbox (tenant, type, body, tracestate) values ('acme', 'a', '', $1)"
      for (const tracestate of ["", "é", "a\n", "x".repeat(513)])
        assert.match(
          await refusal(client.query(text, [tracestate])),
          /violates check constraint "petrel_outbox_tracestate_check"$/,
          tracestate
        )
    })
  })

  it("refuses what is no event from whatever inserts it, and takes all that enqueue takes", async () => {
    const url = await outboxDatabase(server)
    await withClient(url, async (client) => {
      const takes = async (tenant: string, type: string) => {
        const text = "insert into petrel_outbox (tenant, type, body) values ($1, $2, '')"
        return (await refusal(client.query(text, [tenant, type]))) === ""
      }
      const odd = fc.stringMatching(/^[a-zA-Z0-9_.\-* >é\n]{0,8}$/)
      const token = fc.oneof(
        odd,
        fc.constantFrom("acme", "_", "petrel", "a".repeat(64), "a".repeat(65))
      )
      const type = fc.oneof(
        odd,
        fc.constantFrom("petrel.a", "petrelx", "a.b", "a..b", "a.", ".a", "a.petrel"),
        fc.array(token, { maxLength: 5 }).map((tokens) => tokens.join("."))
      )
      await fc.assert(
        fc.asyncProperty(token, type, async (tenant, type) => {
          const isEvent = isToken(tenant) && eventTypeProblem(type) === undefined
          assert.strictEqual(await takes(tenant, type), isEvent, JSON.stringify([tenant, type]))
        }),
        {
          numRuns: 300,
          examples: [
            ["acme", "a.b"],
            ["acme\n", "a"],
            ["acme", "a\n"]
          ]
        }
      )
    })
  })

  it("refuses a row of which nobody could say how long it waits", async () => {
    const url = await outboxDatabase(server)
    await withClient(url, async (client) => {
      const text =
        "insert into petrel_outbox (tenant, type, body, created_at) values ('acme', 'a', '', $1)"
      for (const time of ["infinity", "-infinity"])
        assert.match(
          await refusal(client.query(text, [time])),
          /violates check constraint "petrel_outbox_created_at_check"$/
        )
      assert.strictEqual(await refusal(client.query(text, ["2026-03-04T10:30:00Z"])), "")
    })
  })

  it("lets nobody change or remove what is not published yet", async () => {
    const url = await outboxDatabase(server)
    await inPg(url, (tx) => enqueue(tx, { ...paid, id: "inv_1" }))
    await withClient(url, async (client) => {
      const held = "event inv_1 of acme is not published yet: it can be neither changed nor removed"
      for (const text of ["delete from petrel_outbox", "update petrel_outbox set body = ''"])
        assert.strictEqual(await refusal(client.query(text)), held, text)
      assert.match(await refusal(client.query("truncate petrel_outbox")), /they would be lost$/)
      await client.query("update petrel_outbox set published_at = now(), intake_seq = 1")
      assert.strictEqual(await refusal(client.query("delete from petrel_outbox")), "")
      assert.strictEqual(await refusal(client.query("truncate petrel_outbox")), "")
    })
  })
})
