import { Clock, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { readFates } from "../history/dead-fates.ts"
import { readDeadLetters } from "../history/dead-letters.ts"
import { readLateDeliveries } from "../history/late-deliveries.ts"
import { filterFlags, lettersOf } from "./dead-selection.ts"
import { letterJson, listHeadings, listRow } from "./dead-view.ts"
import { connected, petrel } from "./root-command.ts"
import { cutTo, screenWidth } from "./screen.ts"
import { print } from "./stdout.ts"
import { makeTable } from "./table.ts"
import { remark } from "./terminal.ts"

/** Dead letters whose columns are aligned together. The whole list may not fit in memory. */
const rowsPerPage = 1_000

export const list = Command.make(
  "list",
  {
    ...filterFlags,
    limit: Flag.Int("limit").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("Only the newest so many of them"),
      Flag.filter(
        (count) => count > 0,
        () => "must be a whole number from 1 on"
      ),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    )
  },
  Effect.fnUntraced(function* ({ limit, ...filter }) {
    const { json } = yield* petrel
    const letters = Stream.unwrap(
      filter.id.length === 0
        ? Effect.succeed(readDeadLetters(filter))
        : Effect.map(lettersOf(filter), (found) => Stream.fromIterable(found))
    )
    const shown = limit === undefined ? letters : Stream.takeRight(letters, limit)
    const now = yield* Clock.currentTimeMillis
    const width = screenWidth()
    const table = makeTable(listHeadings)
    yield* Effect.gen(function* () {
      const fates = yield* readFates(filter)
      const late = yield* readLateDeliveries(filter)
      let found = 0
      if (json)
        return yield* Stream.runForEach(shown, (letter) =>
          print(JSON.stringify(letterJson(letter, fates.get(letter.id), late(letter.delivery))))
        )
      yield* shown.pipe(
        Stream.map(listRow(now, fates, late)),
        Stream.grouped(rowsPerPage),
        Stream.runForEach((rows) => {
          found += rows.length
          return Effect.forEach(table.lines(rows), (line) => print(cutTo(width, line)), {
            discard: true
          })
        })
      )
      if (found === 0) yield* remark("There are no such dead letters.")
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription("List deliveries that ended without success, oldest first"),
  Command.withExamples([
    { command: "petrel dead list --endpoint acme/billing --status 5xx --since 1h" },
    { command: "petrel dead list --limit 20", description: "The newest 20, the newest one last" }
  ])
)
