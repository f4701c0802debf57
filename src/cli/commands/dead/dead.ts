import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Command } from "effect/cli"
import { Fact } from "../../../domain/fact.ts"
import type { DeadReason } from "../../../domain/outcome.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import {
  bodyOf,
  DeadLetterDetail,
  DeadLetterView,
  listDeadLetters,
  type Redelivery,
  showDeadLetter
} from "../../../operations/dead-letters/dead-letter-queries.ts"
import { probesText } from "../../../text/fact-line.ts"
import { plainText } from "../../../text/plain-text.ts"
import { localTime, plural, spanText } from "../../../text/quantities.ts"
import { isSet, limitFlag } from "../../flags/shared.ts"
import { shownBody } from "../../format/answer.ts"
import { cutTo, labelled, makeTable, screenWidth } from "../../format/screen.ts"
import { refusal } from "../../refused.ts"
import { connected, petrel } from "../../root-command.ts"
import { print, printRaw, remark } from "../../terminal/stdout.ts"
import { discard } from "./discard.ts"
import { redeliver } from "./redeliver.ts"
import { idArgument, listFlags } from "./selection.ts"

const encodeListed = jsonOf(DeadLetterView)
const encodeShown = jsonOf(DeadLetterDetail)

/** Returns the outcome of a redelivery in a word. */
const outcomeText = ({ dead, outcome }: Redelivery): string => {
  if (outcome === "dead-lettered") return dead === undefined ? "dead again" : `dead as ${dead}`
  return outcome === "delivered-late" ? "delivered late" : outcome
}

/** Returns the number of attempts and the last result: `12× 503, 9 probes`. */
const triedText = ({ attempts, lastErrorClass, lastStatus, probes = 0 }: DeadLetterView) => {
  if (attempts === 0) return "never"
  const tried = `${attempts}× ${lastStatus ?? lastErrorClass ?? ""}`.trimEnd()
  return probes === 0 ? tried : `${tried}, ${plural(probes, "probe")}`
}

/** The event is the last column, since ids may be long and a terminal truncates them. */
const listHeadings = ["id", "dead since", "endpoint", "reason", "tried", "sent again", "event"]

/** Returns a dead letter as a row of the list. */
const listRow =
  (now: number) =>
  (letter: DeadLetterView): ReadonlyArray<string> => {
    const { deadAt, deliveredLate, endpoint, event, id, reason, redelivered, tenant } = letter
    const since = [
      ...(redelivered === undefined
        ? []
        : [`${localTime(redelivered.at, now)} ${outcomeText(redelivered)}`]),
      ...(deliveredLate === undefined ? [] : [`${localTime(deliveredLate.at, now)} delivered late`])
    ]
    return [
      String(id),
      localTime(deadAt, now),
      `${tenant}/${endpoint}`,
      reason,
      triedText(letter),
      since.length === 0 ? "-" : since.join(", "),
      event
    ]
  }

/** Dead letters whose columns are aligned together. The whole list may not fit in memory. */
const rowsPerPage = 1_000

const list = Command.make(
  "list",
  {
    ...listFlags,
    open: isSet("open", "Only those that nobody has sent again, and that were not delivered late"),
    limit: limitFlag("Only the newest N")
  },
  Effect.fnUntraced(function* ({ limit, ...filter }) {
    const { json } = yield* petrel
    const letters = listDeadLetters(filter)
    const shown = limit === undefined ? letters : Stream.takeRight(letters, limit)
    if (json)
      return yield* shown.pipe(
        Stream.runForEach((letter) => print(JSON.stringify(encodeListed(letter)))),
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
    { command: "petrel dead list --reason deadline --reason attempts", description: "Either" },
    { command: "petrel dead list --open", description: "Those that nobody has sent again" },
    { command: "petrel dead list --limit 20", description: "The newest 20, the newest one last" }
  ])
)

/** Maximum number of characters of an answer that are shown for each attempt. */
const snippet = 200

const reasonTexts: Record<DeadReason, string> = {
  permanent: "the answer says that trying again will not help",
  attempts: "all attempts were used up",
  "status-limit": "it was answered with this status for as long as its policy allows",
  deadline: "its time was over",
  "endpoint-disabled": "its endpoint was disabled",
  "endpoint-removed": "its endpoint was removed",
  "circuit-open": "its endpoint's circuit was open",
  "backlog-full": "too many waited for its endpoint",
  "event-gone": "the event was removed before its endpoint took it",
  defect: "its worker failed on it each time",
  gone: "what was to be sent again was no longer kept"
}

const decodeFact = Schema.decodeUnknownOption(Fact)

const attemptText = (fact: Fact, now: number): string => {
  const { attempt = 0, durationMs, error, response, status } = fact
  const body = plainText(response?.body ?? "").trim()
  return [
    `#${attempt}`,
    ...(fact.probe === true ? ["probe"] : []),
    localTime(fact.at, now),
    ...(status === undefined ? [] : [String(status)]),
    ...(error === undefined ? [] : [plainText(`${error.class}: ${error.message}`)]),
    ...(durationMs === undefined ? [] : [spanText(durationMs)]),
    ...(body === "" ? [] : [body.length > snippet ? `${body.slice(0, snippet)}…` : body])
  ].join("  ")
}

const attemptsText = ({ attempts, probes = 0 }: DeadLetterDetail): string => {
  if (attempts === 0) return "none was made"
  return `${attempts}${probesText(attempts, probes)}`
}

const fateText = ({ deliveredLate, id, redelivered }: DeadLetterDetail, now: number): string => {
  if (redelivered === undefined)
    return deliveredLate === undefined
      ? `not yet: \`petrel dead redeliver --id ${id}\` does it`
      : "no: it was delivered late"
  const { at, by, endedAt } = redelivered
  const who = by === undefined ? "" : ` by ${plainText(by)}`
  const ended = endedAt === undefined ? "" : ` ${localTime(endedAt, now)}`
  return `${localTime(at, now)}${who}: ${outcomeText(redelivered)}${ended}`
}

const lateRow = ({ deliveredLate }: DeadLetterDetail, now: number): ReadonlyArray<string> =>
  deliveredLate === undefined
    ? []
    : [
        `delivered late ${localTime(deliveredLate.at, now)}: ${plainText(deliveredLate.worker ?? "a worker")} had sent it while it owned the partition`
      ]

const screen = (
  letter: DeadLetterDetail,
  now: number,
  width: number | undefined
): ReadonlyArray<string> => {
  const { attempts, began, deadAt, deadline, endpoint, event, eventSeq } = letter
  const { headers, history, id, reason, round, tenant, type } = letter
  const body = shownBody(bodyOf(letter))
  const row = (label: string, text: string) =>
    labelled(`  ${label.padEnd(12)}`, plainText(text), width)
  const under = (texts: ReadonlyArray<string>) =>
    texts.flatMap((text) => labelled("    ", text, width))
  const facts = history.flatMap((record) => Option.toArray(decodeFact(record)))
  const notKept =
    facts.length < attempts
      ? [`the history has ${facts.length} of ${attempts}: the others are too old to be kept`]
      : []
  return [
    `dead letter ${id}: ${tenant}/${endpoint}`,
    ...row("event", `${event} (${type}), stored as ${eventSeq}`),
    ...row("reason", `${reason}: ${reasonTexts[reason]}`),
    ...row("dead since", localTime(deadAt, now)),
    ...row(
      "round",
      `${round}, from ${localTime(began, now)} to ${localTime(deadline, now)} at most`
    ),
    ...lateRow(letter, now).flatMap((text) => row("late", text)),
    ...row("sent again", fateText(letter, now)),
    ...row("attempts", attemptsText(letter)),
    ...under([...facts.map((fact) => attemptText(fact, now)), ...notKept]),
    ...row("headers", ""),
    ...under(Object.entries(headers).map(([name, value]) => plainText(`${name}: ${value}`))),
    ...row("body", body.note),
    ...body.lines
  ]
}

const show = Command.make(
  "show",
  { id: idArgument, raw: isSet("raw", "Write the body's bytes as they are, and nothing else") },
  Effect.fnUntraced(function* ({ id, raw }) {
    const { json } = yield* petrel
    if (json && raw) return yield* refusal(["--raw and --json cannot be combined"])
    const letter = yield* showDeadLetter(id).pipe(Effect.provide(connected))
    if (raw) return yield* printRaw(bodyOf(letter))
    if (json) return yield* print(JSON.stringify(encodeShown(letter)))
    const now = yield* Clock.currentTimeMillis
    yield* Effect.forEach(screen(letter, now, screenWidth()), print, { discard: true })
  })
).pipe(
  Command.withDescription("Show a dead letter: its body, its headers, and how each attempt went"),
  Command.withExamples([
    { command: "petrel dead show 17" },
    { command: "petrel dead show 17 --raw > body.bin", description: "The body, byte for byte" }
  ])
)

/** Commands for deliveries that ended without success. */
export const dead = Command.make("dead").pipe(
  Command.withDescription("See the deliveries that ended without success, and send them again"),
  Command.withSubcommands([list, show, redeliver, discard])
)
