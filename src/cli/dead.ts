import { Clock, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { DeadReason } from "../domain/outcome.ts"
import type { DeadLetter } from "../history/dead-letters.ts"
import { readDeadLetters } from "../history/dead-letters.ts"
import { momentText, plainText } from "../history/line.ts"
import { connected, petrel } from "./frame.ts"
import { endpointFlag, nameFlag, tenantFlag, timeFlag } from "./selection.ts"
import { print } from "./stdout.ts"
import { makeTable } from "./table.ts"
import { remark } from "./terminal.ts"

/** Dead letters whose columns are aligned with each other; a list may be longer than memory. */
const page = 1_000

const jsonOf = ({ deadAt, delivery, id, reason }: DeadLetter) => {
  const { deadline, endpoint, event, eventSeq, origin, progress, round, tenant, type } = delivery
  const { nextAttemptAt: _, ...attempted } = progress
  return {
    id,
    tenant,
    endpoint,
    event,
    eventSeq,
    type,
    round,
    reason,
    ...attempted,
    deadline,
    deadAt,
    ...(origin === undefined ? {} : { origin })
  }
}

const headings = ["id", "event", "endpoint", "reason", "attempts", "first", "last", "last answer"]

const rowOf =
  (now: number) =>
  ({ delivery, id, reason }: DeadLetter): ReadonlyArray<string> => {
    const { attempts, firstAttemptAt, lastAttemptAt, lastError, lastErrorClass, lastStatus } =
      delivery.progress
    const moment = (at: number | undefined) =>
      at === undefined ? "-" : momentText(at, now).replace(/\.\d+$/, "")
    const error = lastErrorClass === undefined ? [] : [`${lastErrorClass}: ${lastError ?? ""}`]
    const answer = [...(lastStatus === undefined ? [] : [String(lastStatus)]), ...error]
    return [
      String(id),
      delivery.event,
      `${delivery.tenant}/${delivery.endpoint}`,
      reason,
      String(attempts),
      moment(firstAttemptAt),
      moment(lastAttemptAt),
      plainText(answer.join("  "))
    ]
  }

const list = Command.make(
  "list",
  {
    tenant: tenantFlag,
    endpoint: endpointFlag,
    reason: nameFlag("reason", DeadReason.literals).pipe(
      Flag.withMetavar("REASON"),
      Flag.withDescription(`Only those that ended so: ${DeadReason.literals.join(", ")}`),
      Flag.optional,
      Flag.map(Option.getOrUndefined)
    ),
    since: timeFlag("since", "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'")
  },
  Effect.fnUntraced(function* (query) {
    const { json } = yield* petrel
    const letters = Stream.provide(readDeadLetters(query), connected)
    if (json)
      return yield* Stream.runForEach(letters, (letter) => print(JSON.stringify(jsonOf(letter))))
    const now = yield* Clock.currentTimeMillis
    const table = makeTable(headings)
    let found = 0
    yield* letters.pipe(
      Stream.map(rowOf(now)),
      Stream.grouped(page),
      Stream.runForEach((rows) => {
        found += rows.length
        return Effect.forEach(table.lines(rows), print, { discard: true })
      })
    )
    if (found === 0) yield* remark("There are no such dead letters.")
  })
).pipe(Command.withDescription("List deliveries that ended without success, oldest first"))

/** What is done with deliveries that ended without success. */
export const dead = Command.make("dead").pipe(
  Command.withDescription("See the deliveries that ended without success"),
  Command.withSubcommands([list])
)
