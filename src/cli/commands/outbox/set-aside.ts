import { Clock, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import type { TableName } from "../../../outbox/table-name.ts"
import { OutboxTable, type SetAsideRow } from "../../../relay/outbox-table.ts"
import { bytesText, localTime, plural } from "../../../text/quantities.ts"
import { isSet } from "../../flags/shared.ts"
import { makeTable } from "../../format/screen.ts"
import { Refused, refusal } from "../../refused.ts"
import { petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { openDatabase, outboxFlags } from "./database.ts"

const mostShown = 1_000
const headings = ["row", "tenant", "event", "type", "size", "set aside", "why"]

const openTable = Effect.fnUntraced(function* (url: string, table: TableName) {
  const opened = new OutboxTable(yield* openDatabase(url), table)
  yield* opened.check
  return opened
})

const rowOf =
  (now: number) =>
  ({ at, bytes, error, event, id, tenant, type }: SetAsideRow): ReadonlyArray<string> => [
    ...[id, tenant, event, type, bytesText(bytes), localTime(at, now), error]
  ]

/** Lists rows that were set aside. */
export const list = Command.make(
  "list",
  outboxFlags,
  Effect.fnUntraced(function* ({ database, table }) {
    const { json } = yield* petrel
    const rows = yield* (yield* openTable(database, table)).setAsideRows(mostShown)
    if (json)
      for (const { at, ...row } of rows)
        yield* print(JSON.stringify({ ...row, at: new Date(at).toISOString() }))
    else if (rows.length === 0) yield* remark("no row is set aside")
    else {
      const now = yield* Clock.currentTimeMillis
      for (const line of makeTable(headings).lines(rows.map(rowOf(now)))) yield* print(line)
      if (rows.length === mostShown) yield* remark(`these are the first ${mostShown}`)
    }
  }, Effect.scoped)
).pipe(Command.withDescription("List the rows that can never be published as they are, and why"))

const selection = {
  ...outboxFlags,
  rows: Argument.String("ROW").pipe(
    Argument.withDescription("Its number, as `petrel outbox list` shows it; several may be given"),
    Argument.filterMap(
      (text) => (/^\d{1,18}$/.test(text) ? Option.some(text) : Option.none()),
      () => "must be the number of a row"
    ),
    Argument.variadic()
  ),
  all: isSet("all", "All rows that are set aside")
}

const changing = (name: "release" | "discard", done: string, description: string) =>
  Command.make(
    name,
    selection,
    Effect.fnUntraced(function* ({ all, database, rows, table }) {
      if (all === rows.length > 0)
        return yield* refusal(["name rows by their numbers, or say --all"])
      const opened = yield* openTable(database, table)
      const changed = yield* opened[name](all ? "all" : rows)
      yield* report({ [name]: changed }, `${plural(changed.length, "row")} ${done}`)
      const others = rows.filter((id) => !changed.includes(id))
      if (others.length > 0)
        return yield* new Refused({ message: `not set aside: ${others.join(", ")}` })
    }, Effect.scoped)
  ).pipe(Command.withDescription(description))

export const release = changing(
  "release",
  "will be published",
  "Publish rows that were set aside, after the rows or the broker were changed so that this is possible"
)

export const discard = changing(
  "discard",
  "discarded and never published",
  "Give up rows that were set aside"
)
