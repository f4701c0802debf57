import { Clock, Effect, Stream } from "effect"
import { Command } from "effect/cli"
import { maxClockSkewMs } from "../domain/clock-bounds.ts"
import type { Fact } from "../domain/fact.ts"
import type { Fate } from "../history/dead-fates.ts"
import { readFates } from "../history/dead-fates.ts"
import type { WholeDeadLetter } from "../history/dead-letters.ts"
import { getDeadLetter } from "../history/dead-letters.ts"
import type { LateDelivery } from "../history/late-deliveries.ts"
import { readLateDeliveries } from "../history/late-deliveries.ts"
import { plainText } from "../history/line.ts"
import { readFacts } from "../history/read.ts"
import { spanText } from "../history/span.ts"
import { shownBody, textOf } from "./body-text.ts"
import { idArgument } from "./dead-selection.ts"
import { letterJson, momentOf, outcomeText } from "./dead-view.ts"
import { isSet } from "./endpoint-flags.ts"
import { Refused } from "./refused.ts"
import { connected, petrel } from "./root-command.ts"
import { labelled, screenWidth } from "./screen.ts"
import { print, printRaw } from "./stdout.ts"

/** Maximum number of characters of an answer that are shown for each attempt. */
const snippet = 200

const reasonTexts: Record<WholeDeadLetter["reason"], string> = {
  permanent: "the answer says that trying again will not help",
  attempts: "all attempts were used up",
  deadline: "its time was over",
  "endpoint-disabled": "its endpoint was disabled",
  "endpoint-removed": "its endpoint was removed",
  "circuit-open": "its endpoint's circuit was open",
  "backlog-full": "too many waited for its endpoint",
  defect: "its worker failed on it each time",
  gone: "what was to be sent again was not kept any more"
}

/** Reads the facts of the attempts of the dead letter's round. */
const attemptsOf = ({ delivery, storedAt }: WholeDeadLetter) =>
  readFacts({
    endpoint: { tenant: delivery.tenant, id: delivery.endpoint },
    event: `evt_${delivery.eventSeq}`,
    kinds: ["attempt-failed"],
    since: delivery.began - maxClockSkewMs,
    until: storedAt + maxClockSkewMs
  }).pipe(
    Stream.filter(({ fact }) => fact.round === delivery.round && fact.eventAt === delivery.eventAt),
    Stream.runCollect
  )

const attemptText = (fact: Fact, now: number): string => {
  const { attempt = 0, durationMs, error, response, status } = fact
  const body = plainText(response?.body ?? "").trim()
  return [
    `#${attempt}`,
    momentOf(fact.at, now),
    ...(status === undefined ? [] : [String(status)]),
    ...(error === undefined ? [] : [plainText(`${error.class}: ${error.message}`)]),
    ...(durationMs === undefined ? [] : [spanText(durationMs)]),
    ...(body === "" ? [] : [body.length > snippet ? `${body.slice(0, snippet)}…` : body])
  ].join("  ")
}

const fateText = (
  fate: Fate | undefined,
  late: LateDelivery | undefined,
  id: number,
  now: number
): string => {
  if (fate === undefined && late !== undefined) return "no: it was delivered late"
  if (fate === undefined) return `not yet: \`petrel dead redeliver --id ${id}\` does it`
  const by = fate.by === undefined ? "" : ` by ${plainText(fate.by)}`
  const ended = fate.endedAt === undefined ? "" : ` ${momentOf(fate.endedAt, now)}`
  return `${momentOf(fate.at, now)}${by}: ${outcomeText(fate)}${ended}`
}

const lateStory = ({ at, worker }: LateDelivery, now: number): string =>
  `delivered late ${momentOf(at, now)}: ${plainText(worker ?? "a worker")} had sent it while it owned the partition`

/**
 * Returns the headers that every receiver gets, without the signature and those of the endpoint's
 * configuration.
 */
const headersOf = ({ delivery: { content, event } }: WholeDeadLetter) => ({
  "webhook-id": event,
  "content-type": content.contentType ?? "application/json",
  ...(content.traceparent === undefined ? {} : { traceparent: content.traceparent }),
  ...(content.tracestate === undefined ? {} : { tracestate: content.tracestate })
})

interface Told {
  readonly attempts: ReadonlyArray<Fact>
  readonly fate: Fate | undefined
  readonly late: LateDelivery | undefined
  readonly now: number
  readonly width: number | undefined
}

const screen = (letter: WholeDeadLetter, told: Told): ReadonlyArray<string> => {
  const { deadAt, delivery, id, reason } = letter
  const { attempts, fate, late, now, width } = told
  const { endpoint, event, eventSeq, round, tenant, type } = delivery
  const body = shownBody(letter.body)
  const made = delivery.progress.attempts
  const row = (label: string, text: string) =>
    labelled(`  ${label.padEnd(12)}`, plainText(text), width)
  const under = (texts: ReadonlyArray<string>) =>
    texts.flatMap((text) => labelled("    ", text, width))
  const untold =
    attempts.length < made
      ? [`the history tells of ${attempts.length} of ${made}: the others are too old to be kept`]
      : []
  return [
    `dead letter ${id}: ${tenant}/${endpoint}`,
    ...row("event", `${event} (${type}), ${eventSeq} of all events`),
    ...row("reason", `${reason}: ${reasonTexts[reason]}`),
    ...row("dead since", momentOf(deadAt, now)),
    ...row(
      "round",
      `${round}, from ${momentOf(delivery.began, now)} to ${momentOf(delivery.deadline, now)} at most`
    ),
    ...(late === undefined ? [] : row("late", lateStory(late, now))),
    ...row("sent again", fateText(fate, late, id, now)),
    ...row("attempts", made === 0 ? "none was made" : String(made)),
    ...under([...attempts.map((fact) => attemptText(fact, now)), ...untold]),
    ...row("headers", ""),
    ...under(
      Object.entries(headersOf(letter)).map(([name, value]) => plainText(`${name}: ${value}`))
    ),
    ...row("body", body.note),
    ...body.lines
  ]
}

export const show = Command.make(
  "show",
  { id: idArgument, raw: isSet("raw", "Write the body's bytes as they are, and nothing else") },
  Effect.fnUntraced(function* ({ id, raw }) {
    const { json } = yield* petrel
    if (json && raw) return yield* new Refused({ message: "--raw and --json exclude each other" })
    yield* Effect.gen(function* () {
      const letter = yield* getDeadLetter(id)
      if (letter === undefined)
        return yield* new Refused({
          message: `there is no dead letter ${id}: it was discarded, has become too old to be kept, or never was`
        })
      if (raw) return yield* printRaw(letter.body)
      const { endpoint, tenant } = letter.delivery
      const query = { endpoint: { tenant, id: endpoint } }
      const [facts, fates, lateDeliveries] = yield* Effect.all(
        [attemptsOf(letter), readFates(query), readLateDeliveries(query)],
        { concurrency: 3 }
      )
      const late = lateDeliveries(letter.delivery)
      const attempts = facts.map(({ fact }) => fact)
      const fate = fates.get(id)
      const text = textOf(letter.body)
      if (json)
        return yield* print(
          JSON.stringify({
            ...letterJson(letter, fate, late),
            headers: headersOf(letter),
            bytes: letter.body.length,
            ...(text === undefined
              ? { bodyBase64: Buffer.from(letter.body).toString("base64") }
              : { body: text }),
            history: facts.map(({ record, seq }) => ({ seq, ...record }))
          })
        )
      const now = yield* Clock.currentTimeMillis
      const lines = screen(letter, { attempts, fate, late, now, width: screenWidth() })
      yield* Effect.forEach(lines, print, { discard: true })
    }).pipe(Effect.provide(connected))
  })
).pipe(
  Command.withDescription("Show a dead letter: its body, its headers, and how each attempt went"),
  Command.withExamples([
    { command: "petrel dead show 17" },
    { command: "petrel dead show 17 --raw > body.bin", description: "The body, byte for byte" }
  ])
)
