import { Config, Effect, Option } from "effect"
import { Flag } from "effect/cli"
import { readTable, tableExpected, usualTable } from "../../../outbox/table-name.ts"
import { openSession } from "../../../relay/database.ts"
import { findDriver } from "../../../relay/drivers.ts"
import { maybe } from "../../flags/shared.ts"
import { Refused, refusal } from "../../refused.ts"

const variable = "DATABASE_URL"
const urlExpected = "must be the URL of a PostgreSQL, such as postgres://user@127.0.0.1:5432/shop"

/** True for the URL of a PostgreSQL. */
export const isDatabase = (text: string): boolean =>
  /^postgres(ql)?:$/.test(URL.canParse(text) ? new URL(text).protocol : "")

const tableText = Flag.String("table").pipe(
  Flag.withMetavar("TABLE"),
  Flag.withDescription(`The outbox, with its schema if it needs one (default: ${usualTable})`)
)
const asTable = Flag.filterMap(
  (text: string) => Option.fromUndefinedOr(readTable(text)),
  () => tableExpected
)

/** The table of an outbox, where a command has other uses than outboxes. */
export const givenTable = maybe(tableText.pipe(asTable))

/** Where an outbox is. */
export const outboxFlags = {
  database: Flag.String("database").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription(
      `The PostgreSQL that has the outbox (default: ${variable}, where a password is hidden from others)`
    ),
    Flag.withFallbackConfig(Config.String(variable)),
    Flag.withDefault(""),
    Flag.filter(
      (text) => text === "" || isDatabase(text),
      () => urlExpected
    )
  ),
  table: tableText.pipe(Flag.withDefault(usualTable), asTable)
}

/** Returns the database that was named. Warns of a password in the flag. */
export const namedDatabase = Effect.fnUntraced(function* (url: string) {
  if (url === "")
    return yield* refusal([`say which database has the outbox, with --database or ${variable}`])
  if (new URL(url).password !== "" && process.env[variable] !== url)
    yield* Effect.logWarning(
      `other users of this machine see the password in --database while this runs: use ${variable}`
    )
  return url
})

/** Finds the driver that the project has. */
export const projectDriver = Effect.gen(function* () {
  const folder = process.cwd()
  const found = yield* Effect.promise(() => findDriver(folder))
  if (found !== undefined) return found
  return yield* new Refused({
    message: `the project in ${folder} has no driver for PostgreSQL: run \`npm install pg\` there, or postgres instead, and then this again`
  })
})

/** Opens a session of the database until the scope closes. */
export const openDatabase = Effect.fnUntraced(function* (url: string) {
  const named = yield* namedDatabase(url)
  return yield* openSession(yield* projectDriver, named, () => undefined)
})
