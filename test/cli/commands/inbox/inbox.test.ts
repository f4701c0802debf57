import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { NewEntry } from "../../../../src/receiver/entry.ts"
import { migrationSql } from "../../../../src/receiver/stores/migrations.ts"
import { sqlTables } from "../../../../src/receiver/stores/sql.ts"
import { sqliteDialect, sqliteStore } from "../../../../src/receiver/stores/sqlite.ts"
import { startPostgres, withoutPostgres } from "../../../kit/postgres-server.ts"
import { run } from "../../in-process.ts"

const entry = (key: string, changes: Partial<NewEntry> = {}): NewEntry => ({
  ...{ source: "stripe", key, type: "invoice.paid", subject: "cus_1", version: 7 },
  ...{ at: 1_700_000_000_000, headers: { "x-request-id": "r1" }, contentType: "application/json" },
  ...{ body: Buffer.from('{"total":12}'), keepMs: 60_000 },
  ...changes
})

/** A folder with an SQLite file that has an inbox. */
const withInbox = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "petrel-test-inbox-"))
    const file = join(folder, "shop.db")
    const database = new DatabaseSync(file)
    const store = sqliteStore(database)
    await store.migrate()
    const { queue } = store
    if (queue === undefined) throw new Error("the store has a queue")
    return { folder, queue, database, flags: ["--database", `sqlite:${file}`] }
  }),
  ({ database, folder }) =>
    Effect.sync(() => {
      database.close()
      rmSync(folder, { recursive: true, force: true })
    })
)

describe("petrel inbox", () => {
  it.live("lists what waits for a person, shows it, retries it and gives it up", () =>
    Effect.gen(function* () {
      const { flags, queue } = yield* withInbox
      yield* Effect.promise(async () => {
        await queue.put([entry("evt_1")])
        const headers = { "accept-language": "en", "x-request-id": "r1" }
        await queue.keep(entry("evt_2", { headers }), "dead", "Error: no such account")
        const odd = { type: undefined, subject: undefined, body: Buffer.from([0, 255]) }
        await queue.keep(entry("evt_3", { ...odd, source: "github" }), "quarantined", "no JSON")
      })
      const listed = yield* run("inbox", "list", ...flags)
      assert.strictEqual(listed.code, 0)
      assert.match(listed.out[0] ?? "", /^id +state +source +type +key +attempts +received +error/)
      assert.match(listed.out[1] ?? "", /^3 +quarantined +github +- +evt_3 .* no JSON$/)
      assert.match(listed.out[2] ?? "", /^2 +dead +stripe +invoice\.paid +evt_2 .* account$/)
      assert.lengthOf(listed.out, 3)
      const open = yield* run("inbox", "list", ...flags, "--state", "received", "--json")
      assert.deepInclude(JSON.parse(open.out[0] ?? ""), { key: "evt_1", state: "received" })

      const shown = yield* run("inbox", "show", "2", ...flags)
      assert.include(shown.out.join("\n"), '{"total":12}')
      assert.match(shown.out.join("\n"), /^error {14}Error: no such account$/m)
      assert.match(shown.out.join("\n"), /^ {2}accept-language {2}en$/m)
      const json = JSON.parse((yield* run("inbox", "show", "3", ...flags, "--json")).out[0] ?? "")
      assert.deepInclude(json, { id: "3", bodyBase64: "AP8=", source: "github" })

      assert.deepStrictEqual((yield* run("inbox", "retry", "2", ...flags)).out, ["1 event retried"])
      const again = yield* run("inbox", "retry", "2", "3", ...flags)
      assert.deepStrictEqual(
        [again.code, again.err],
        [1, ["petrel: 2: the inbox has no dead or quarantined event of this id; 1 other retried"]]
      )
      yield* Effect.promise(() => queue.keep(entry("evt_4"), "dead", "no"))
      const resolved = yield* run("inbox", "resolve", "--all", "--by", "ada", ...flags)
      assert.deepStrictEqual(resolved.out, ["1 event resolved"])
      const given = yield* Effect.promise(() => queue.show("4"))
      assert.deepInclude(given, { state: "discarded", error: "resolved by ada" })
      const none = yield* run("inbox", "list", ...flags)
      assert.deepStrictEqual([none.code, none.out], [0, []])
    }).pipe(Effect.scoped)
  )

  it.live("makes the tables, or prints the statements that make them", () =>
    Effect.gen(function* () {
      const { folder } = yield* withInbox
      const file = join(folder, "new.db")
      const made = yield* run(
        "inbox",
        "migrate",
        "--database",
        `sqlite:${file}`,
        "--table",
        "hooks"
      )
      assert.deepStrictEqual([made.code, made.out], [0, ["The inbox hooks is up to date"]])
      const listed = yield* run(
        ...["inbox", "list", "--database", `sqlite:${file}`, "--table", "hooks"]
      )
      assert.strictEqual(listed.code, 0)
      for (const url of ["postgres://x/y", "mysql://x/y", "sqlite:z"]) {
        const printed = yield* run("inbox", "migrate", "--database", url, "--print")
        assert.include(printed.out.join("\n"), "petrel_inbox (")
        assert.include(
          printed.out.join("\n"),
          "insert into petrel_inbox_schema (version) values (1);"
        )
      }
      const bySelf = new DatabaseSync(join(folder, "by-self.db"))
      bySelf.exec(migrationSql(sqliteDialect, sqlTables("petrel_inbox")))
      yield* Effect.promise(() => sqliteStore(bySelf).migrate())
      bySelf.close()
    }).pipe(Effect.scoped)
  )

  it.live("says in one sentence what is missing", () =>
    Effect.gen(function* () {
      const { flags, folder } = yield* withInbox
      const said = (...args: ReadonlyArray<string>) =>
        Effect.map(run("inbox", ...args), ({ code, err }) => [code, ...err])
      assert.deepStrictEqual(yield* said("list", "--database", "sqlite:none.db"), [
        2,
        "petrel: there is no file none.db"
      ])
      assert.deepStrictEqual(yield* said("retry", ...flags), [2, "petrel: name ids, or say --all"])
      assert.deepStrictEqual(yield* said("show", "99", ...flags), [
        1,
        "petrel: the inbox has no event 99"
      ])
      const [code, text = ""] = yield* said("list", ...flags, "--table", "others")
      assert.strictEqual(code, 1)
      assert.include(text, "run `petrel inbox migrate --table others`")
      const [, wrong = ""] = yield* said("list", "--database", "oracle://x")
      assert.include(wrong, "must be a URL such as postgres://")
      const before = process.cwd()
      process.chdir(folder)
      const [, missing = ""] = yield* said("list", "--database", "postgres://127.0.0.1/shop")
      process.chdir(before)
      assert.include(missing, "has no driver for PostgreSQL: run `npm install pg` there")
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(withoutPostgres !== undefined)("finds the driver of the project", () =>
    Effect.gen(function* () {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startPostgres()),
        (one) => Effect.promise(() => one.stop())
      )
      const flags = ["--database", server.url]
      assert.strictEqual((yield* run("inbox", "migrate", ...flags)).code, 0)
      assert.strictEqual((yield* run("inbox", "migrate", ...flags)).code, 0)
      const listed = yield* run("inbox", "list", "--state", "done", "--json", ...flags)
      assert.deepStrictEqual([listed.code, listed.out], [0, []])
      yield* Effect.promise(() => server.kill9())
      const { code, err } = yield* run("inbox", "list", ...flags)
      assert.strictEqual(code, 1)
      assert.match(err[0] ?? "", /^petrel: the database does not do that: .*ECONNREFUSED/)
    }).pipe(Effect.scoped)
  )
})
