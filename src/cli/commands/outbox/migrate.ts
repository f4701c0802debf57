import { Effect } from "effect"
import { Command } from "effect/cli"
import { migration, tableVersion, versionIn } from "../../../outbox/migration.ts"
import type { TableName } from "../../../outbox/table-name.ts"
import type { Session } from "../../../relay/database.ts"
import { isSet } from "../../flags/shared.ts"
import { Refused } from "../../refused.ts"
import { report } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"
import { openDatabase, outboxFlags } from "./database.ts"

const plain = ({ quoted }: TableName) => quoted.replaceAll('"', "")

/** Makes the outbox, or brings it up to date, all or nothing. */
const migrateTable = Effect.fnUntraced(function* (session: Session, table: TableName) {
  const [row] = yield* session.query(
    "look for the table",
    "select to_regclass($1)::oid::text as oid, obj_description(to_regclass($1), 'pg_class') as comment",
    [table.quoted]
  )
  const before = versionIn(typeof row?.comment === "string" ? row.comment : null)
  if (typeof row?.oid === "string" && before === undefined)
    return yield* new Refused({
      message: `there is a table ${plain(table)} that is not an outbox of Petrel: choose another name with --table`
    })
  if (before !== undefined && before > tableVersion)
    return yield* new Refused({
      message: `the outbox ${plain(table)} is of version ${before}, which this Petrel does not know: use a newer one`
    })
  yield* session.query("migrate the outbox", migration(table))
  return before
})

/** Makes or migrates the outbox. */
export const migrate = Command.make(
  "migrate",
  {
    database: outboxFlags.database,
    table: outboxFlags.table,
    print: isSet("print", "Only print the statements, for your own migrations")
  },
  Effect.fnUntraced(function* ({ database, print: onlyPrint, table }) {
    if (onlyPrint) return yield* print(migration(table).trimEnd())
    const session = yield* openDatabase(database)
    const before = yield* migrateTable(session, table)
    const done = before === undefined ? "is made" : "is up to date"
    yield* report(
      { table: plain(table), version: tableVersion, before: before ?? null },
      `The outbox ${plain(table)} ${done} (version ${tableVersion})`
    )
  }, Effect.scoped)
).pipe(
  Command.withDescription("Make the table of an outbox, or bring it up to date"),
  Command.withExamples([
    { command: "petrel outbox migrate --database postgres://127.0.0.1/shop" },
    { command: "petrel outbox migrate --database postgres://127.0.0.1/shop --print" }
  ])
)
