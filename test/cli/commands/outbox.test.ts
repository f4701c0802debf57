import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { nameOf } from "../../../src/cli/commands/outbox/outbox.ts"
import { migration } from "../../../src/outbox/migration.ts"
import { readTable } from "../../../src/outbox/table-name.ts"
import { firstOutboxDatabase, withClient } from "../../kit/outbox.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../../kit/postgres-server.ts"
import { program } from "../command-line.ts"
import { run } from "../in-process.ts"
import { startNode } from "../running.ts"

const somewhere = ["--database", "postgres://127.0.0.1:1/shop"]

describe("petrel outbox", () => {
  it.live("refuses what is wrong with one sentence, and does nothing", () =>
    Effect.gen(function* () {
      for (const [args, sentence] of [
        [[], "say which database has the outbox, with --database or DATABASE_URL"],
        [["list"], "say which database has the outbox, with --database or DATABASE_URL"],
        [
          ["--database", "mysql://127.0.0.1/shop"],
          "must be the URL of a PostgreSQL, such as postgres://user@127.0.0.1:5432/shop"
        ],
        [[...somewhere, "--keep", "10s"], "must be at least a minute"],
        [[...somewhere, "--poll", "soon"], "must be a length of time"],
        [[...somewhere, "--table", "a;b"], "must be a table such as petrel_outbox"],
        [[...somewhere, "--name", "a b"], "must be 1 to 64 letters"],
        [["release", ...somewhere], "name rows by their numbers, or say --all"],
        [["discard", "--all", "7", ...somewhere], "name rows by their numbers, or say --all"],
        [["discard", "seven", ...somewhere], "must be the number of a row"]
      ] as const) {
        const { code, err } = yield* run("outbox", ...args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.include(err.join("\n"), sentence)
      }
    })
  )

  it.live("prints the statements of its table without a database", () =>
    Effect.gen(function* () {
      const { code, out } = yield* run("outbox", "migrate", "--print", "--table", "billing.events")
      const table = readTable("billing.events")
      assert.strictEqual(code, 0)
      assert.strictEqual(`${out.join("\n")}\n`, table === undefined ? "" : migration(table))
    })
  )

  it.live("says which driver the project lacks", () =>
    Effect.gen(function* () {
      const empty = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-no-driver-"))),
        (folder) => Effect.promise(() => rm(folder, { recursive: true }))
      )
      const { ended, err } = yield* startNode([program, "outbox", ...somewhere], empty)
      assert.strictEqual(yield* ended, 1)
      assert.deepStrictEqual(err, [
        `petrel: the project in ${empty} has no driver for PostgreSQL: run \`npm install pg\` there, or postgres instead, and then this again`
      ])
    }).pipe(Effect.scoped)
  )

  it("names an outbox by its database and table", () => {
    assert.strictEqual(nameOf("postgres://h/shop", "petrel_outbox"), "shop-petrel_outbox")
    assert.strictEqual(nameOf("postgres://h/my%20shop?x=1", "events"), "my-shop-events")
    assert.strictEqual(nameOf("postgres://h", "events"), "postgres-events")
  })

  describe.skipIf(withoutPostgres !== undefined)("migrate", () => {
    let server: PostgresServer
    beforeAll(async () => {
      server = await startPostgres()
    })
    afterAll(() => server.stop())

    it.live("makes an outbox once, and leaves another table alone", () =>
      Effect.gen(function* () {
        const url = yield* Effect.promise(() => server.database("shop"))
        const migrate = (database: string, ...more: ReadonlyArray<string>) =>
          run("outbox", "migrate", "--json", "--database", database, ...more)
        const outOf = (before: number | null) => [
          JSON.stringify({ table: "petrel_outbox", version: 2, before })
        ]
        assert.deepStrictEqual((yield* migrate(url)).out, outOf(null))
        assert.deepStrictEqual((yield* migrate(url)).out, outOf(2))
        const first = yield* Effect.promise(() => firstOutboxDatabase(server))
        assert.deepStrictEqual((yield* migrate(first)).out, outOf(1))
        assert.deepStrictEqual((yield* migrate(first)).out, outOf(2))
        yield* Effect.promise(() =>
          withClient(url, async (client) => {
            await client.query("create table events (id int)")
            await client.query("comment on table petrel_outbox is 'Petrel outbox, version 9'")
          })
        )
        const sentences = [yield* migrate(url, "--table", "events"), yield* migrate(url)].map(
          ({ err }) => err
        )
        assert.deepStrictEqual(sentences, [
          [
            "petrel: there is a table events that is not an outbox of Petrel: choose another name with --table"
          ],
          [
            "petrel: the outbox petrel_outbox is of version 9, which this Petrel does not know: use a newer one"
          ]
        ])
        assert.deepStrictEqual((yield* run("outbox", "list", "--database", url)).err, [
          "petrel: the outbox petrel_outbox is of version 9, which this Petrel does not know: use a newer one"
        ])
      })
    )
  })
})
