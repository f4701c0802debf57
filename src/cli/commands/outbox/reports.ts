import { Clock, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { forgetOutbox } from "../../../cluster/outbox-reports.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { isToken, tokenExpected } from "../../../domain/token-rules.ts"
import { listOutboxes, OutboxView } from "../../../operations/status/incoming.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, localTime, spanText } from "../../../text/quantities.ts"
import { makeTable } from "../../format/screen.ts"
import { Refused } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"

const encode = jsonOf(OutboxView)
const headings = ["outbox", "counted", "waiting", "oldest", "set aside", "state"]

const rowOf =
  (now: number) =>
  ({
    at,
    countedAt = at,
    isSilent,
    name,
    oldestMs,
    pending,
    problem,
    setAside
  }: OutboxView): ReadonlyArray<string> => [
    ...[
      name,
      localTime(countedAt, now),
      countText(pending),
      pending === 0 ? "-" : spanText(oldestMs)
    ],
    countText(setAside),
    isSilent
      ? `its relay has been silent for ${spanText(now - at)}${problem === undefined ? "" : `: ${plainText(problem)}`}`
      : plainText(problem ?? "is published")
  ]

/** Shows what the relays last said of their outboxes. */
export const status = Command.make(
  "status",
  {},
  Effect.fnUntraced(function* () {
    const { json } = yield* petrel
    const { outboxes } = yield* Effect.provide(listOutboxes, connected)
    if (json) for (const one of outboxes) yield* print(JSON.stringify(encode(one)))
    else if (outboxes.length === 0) yield* remark("no relay has reported an outbox")
    else {
      const now = yield* Clock.currentTimeMillis
      for (const line of makeTable(headings).lines(outboxes.map(rowOf(now)))) yield* print(line)
    }
  })
).pipe(Command.withDescription("Show the state of all outboxes, as their relays report it"))

/** Forgets an outbox that no longer exists. */
export const forget = Command.make(
  "forget",
  {
    name: Argument.String("NAME").pipe(
      Argument.withDescription("As `petrel outbox status` shows it"),
      Argument.filter(isToken, () => tokenExpected)
    )
  },
  Effect.fnUntraced(function* ({ name }) {
    if (!(yield* Effect.provide(forgetOutbox(name), connected)))
      return yield* new Refused({ message: `no relay has reported an outbox ${name}` })
    yield* report({ forgotten: name }, `Forgot the outbox ${name}: no alert is raised about it`)
  })
).pipe(
  Command.withDescription(
    "Forget an outbox that no longer exists, so that no alert is raised about its relay"
  )
)
