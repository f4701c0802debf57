import { Clock, Effect, Stream } from "effect"
import { Command } from "effect/cli"
import { listDeadLetters } from "../../../operations/dead-letters/dead-letter-queries.ts"
import { isSet, limitFlag } from "../../flags/shared.ts"
import { cutTo, screenWidth } from "../../format/screen.ts"
import { makeTable } from "../../format/table.ts"
import { connected, petrel } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"
import { remark } from "../../terminal/terminal.ts"
import { filterFlags } from "./selection.ts"
import { listHeadings, listRow } from "./view.ts"

/** Dead letters whose columns are aligned together. The whole list may not fit in memory. */
const rowsPerPage = 1_000

export const list = Command.make(
  "list",
  {
    ...filterFlags,
    open: isSet("open", "Only those that nobody has sent again, and that were not delivered late"),
    limit: limitFlag("Only the newest so many of them")
  },
  Effect.fnUntraced(function* ({ limit, ...filter }) {
    const { json } = yield* petrel
    const letters = listDeadLetters(filter)
    const shown = limit === undefined ? letters : Stream.takeRight(letters, limit)
    if (json)
      return yield* shown.pipe(
        Stream.runForEach((letter) => print(JSON.stringify(letter))),
        Effect.provide(connected)
      )
    const now = yield* Clock.currentTimeMillis
    const width = screenWidth()
    const table = makeTable(listHeadings)
    let found = 0
    yield* shown.pipe(
      Stream.map(listRow(now)),
      Stream.grouped(rowsPerPage),
      Stream.runForEach((rows) => {
        found += rows.length
        return Effect.forEach(table.lines(rows), (line) => print(cutTo(width, line)), {
          discard: true
        })
      }),
      Effect.provide(connected)
    )
    if (found === 0) yield* remark("There are no such dead letters.")
  })
).pipe(
  Command.withDescription("List deliveries that ended without success, oldest first"),
  Command.withExamples([
    { command: "petrel dead list --endpoint acme/billing --status 5xx --since 1h" },
    { command: "petrel dead list --open", description: "What nobody has taken care of yet" },
    { command: "petrel dead list --limit 20", description: "The newest 20, the newest one last" }
  ])
)
