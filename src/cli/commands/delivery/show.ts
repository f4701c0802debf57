import { Clock, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { attemptsText, momentText, plainText } from "../../../history/line.ts"
import { spanText } from "../../../history/span.ts"
import type { RoundView } from "../../../operations/deliveries/explain-delivery.ts"
import { explainDelivery, readDeliveryId } from "../../../operations/deliveries/explain-delivery.ts"
import { isSet, tenantFlag } from "../../flags/shared.ts"
import { redirectLines, responseLines, shortResponseLines } from "../../format/answer.ts"
import { wrapped } from "../../format/columns.ts"
import { labelled, screenWidth } from "../../format/screen.ts"
import { connected, petrel } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"
import { remark } from "../../terminal/terminal.ts"
import { lagText } from "../projection.ts"

export const deliveryIdArgument = Argument.String("ID").pipe(
  Argument.withDescription("<event id>.<endpoint id>, as the history shows it"),
  Argument.filterMap(
    (text) => (readDeliveryId(text) === undefined ? Option.none() : Option.some(text)),
    () => "must be <event id>.<endpoint id>, such as acme.invoice-42.billing"
  )
)

const beginnings = { routed: "routed", redelivered: "sent again", replayed: "replayed" } as const

/** Explains why a delivered round may have a dead letter. */
const lateLine = (dead: number | undefined): string =>
  `  Delivered late: recorded by a worker that did not own the partition any more.${dead === undefined ? "" : ` It resolves dead letter ${dead}.`}`

const attemptText = (attempt: RoundView["attempts"][number], now: number): string => {
  const { durationMs, error, isProbe, isSuccess, nextAttemptAt, number, status } = attempt
  return [
    `#${number}`,
    ...(isProbe === true ? ["probe"] : []),
    ...(status === undefined ? [] : [String(status)]),
    ...(error === undefined ? [] : [`${error.class}: ${error.message}`]),
    ...(durationMs === undefined ? [] : [spanText(durationMs)]),
    isSuccess
      ? "delivered"
      : nextAttemptAt === undefined
        ? "no further attempt"
        : `next at ${momentText(nextAttemptAt, now)}`
  ].join("  ")
}

const indent = "    "

/** What the receiver answered: its beginning, or all that is kept of it. */
const answerLines = (
  { redirects, response }: RoundView["attempts"][number],
  isWhole: boolean,
  width: number | undefined
): ReadonlyArray<string> => {
  const room = width === undefined ? undefined : width - indent.length
  return [
    ...wrapped(redirectLines(redirects), room),
    ...(response === undefined
      ? []
      : isWhole
        ? wrapped(responseLines(response), room)
        : shortResponseLines(response, room))
  ].map((line) => `${indent}${line}`.trimEnd())
}

const roundLines = (round: RoundView, now: number, isWhole: boolean): ReadonlyArray<string> => {
  const width = screenWidth()
  const { attempts, begun, discardedAt, end, holds, lastAttempt, repeats, state, waitsIn } = round
  const at = (time: number) => momentText(time, now)
  const line = (time: number, text: string) =>
    labelled(`  ${at(time)}  `, plainText(text), width).join("\n")
  const deadline = begun?.deadline ?? waitsIn?.deadline ?? undefined
  return [
    ...(begun === null
      ? ["  What began it is not in the history any more."]
      : [line(begun.at, beginnings[begun.by])]),
    ...attempts.flatMap((attempt) => [
      line(attempt.at, attemptText(attempt, now)),
      ...answerLines(attempt, isWhole, width)
    ]),
    ...(end?.late === true ? [lateLine(end.dead)] : []),
    ...(end !== undefined && state !== "delivered"
      ? [
          line(
            end.at,
            `dead-lettered: ${end.reason} ${attemptsText(lastAttempt, end.probes)}${end.dead === undefined ? "" : `; petrel dead show ${end.dead}`}`
          )
        ]
      : []),
    ...(discardedAt === undefined ? [] : [line(discardedAt, "discarded")]),
    ...(repeats === 0 ? [] : [`  ${repeats} facts tell again what was told before.`]),
    ...(holds ?? []).flatMap(({ freedBy, says }) => [
      ...labelled("  waits    ", plainText(says), width),
      ...labelled("           freed by: ", plainText(freedBy), width)
    ]),
    ...(waitsIn === undefined || waitsIn === null
      ? []
      : [`  in       message ${waitsIn.seq} of ${waitsIn.stream}`]),
    ...(state !== "open" || deadline === undefined ? [] : [`  expires  ${at(deadline)}`])
  ]
}

/** Shows the rounds of one delivery, and what blocks it. */
export const deliveryShow = Command.make(
  "show",
  {
    id: deliveryIdArgument,
    tenant: tenantFlag,
    answers: isSet("answers", "Show the receiver's answers as they are kept: headers and body")
  },
  Effect.fnUntraced(function* ({ answers, id, tenant }) {
    const { json } = yield* petrel
    const found = yield* explainDelivery(id, tenant).pipe(Effect.provide(connected))
    if (json) return yield* print(JSON.stringify(found))
    const { endpoint, event, eventSeq, lag, rounds } = found
    const now = yield* Clock.currentTimeMillis
    yield* print(`${plainText(event ?? `event ${eventSeq}`)} → ${found.tenant}/${endpoint}`)
    for (const round of rounds) {
      if (rounds.length > 1) yield* print(`round ${round.round}`)
      yield* Effect.forEach(roundLines(round, now, answers), print, { discard: true })
    }
    if (!answers && rounds.some(({ attempts }) => attempts.some(({ response }) => response)))
      yield* remark("With --answers: the receiver's answers with their headers.")
    if (lag !== undefined)
      yield* remark(`From the delivery log, which is ${lagText(lag)} the history.`)
  })
).pipe(Command.withDescription("Show the life of one delivery, and what it waits for"))
