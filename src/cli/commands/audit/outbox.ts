import { Effect } from "effect"
import type { TableName } from "../../../outbox/table-name.ts"
import { auditOutbox, isClean, type OutboxAudit } from "../../../relay/outbox-audit.ts"
import { OutboxTable } from "../../../relay/outbox-table.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, plural } from "../../../text/quantities.ts"
import { Refused, refusal } from "../../refused.ts"
import { connected, petrel } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"
import { isDatabase, openDatabase } from "../outbox/database.ts"

const lines = (found: OutboxAudit): ReadonlyArray<string> => [
  `${plural(found.rows, "row")}: ${countText(found.published)} published and in the intake, ${countText(found.underWay)} under way, ${countText(found.discarded)} discarded`,
  ...(found.uncertain === 0
    ? []
    : [
        `${plural(found.uncertain, "published row")} ${found.uncertain === 1 ? "is" : "are"} older than what the intake still has: \`petrel audit\` may know the events`
      ]),
  ...found.problems.map(
    ({ event, kind, tenant, text }) => `${kind}: ${tenant}/${plainText(event)} ${plainText(text)}`
  )
]

/** Compares an outbox with the intake, and fails where they differ. */
export const compareOutbox = Effect.fnUntraced(function* (url: string, table: TableName) {
  if (!isDatabase(url))
    return yield* refusal(["--outbox must be the URL of a PostgreSQL that has an outbox"])
  const { json } = yield* petrel
  const opened = new OutboxTable(yield* openDatabase(url), table)
  yield* opened.check
  const found = yield* Effect.provide(auditOutbox(opened), connected)
  const { problems, ...sums } = found
  if (json)
    for (const line of [{ outbox: { ...sums, clean: isClean(found) } }, ...problems])
      yield* print(JSON.stringify(line))
  else for (const line of lines(found)) yield* print(line)
  if (isClean(found)) return
  const counts = Object.entries(sums.counts).flatMap(([kind, count]) =>
    count === 0 ? [] : [`${kind} ${countText(count)}`]
  )
  return yield* new Refused({ message: `the outbox is not clean: ${counts.join(", ")}` })
}, Effect.scoped)
