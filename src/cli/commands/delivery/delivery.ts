import { Clock, Effect, Option, Result, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import type { Retried } from "../../../cluster/command.ts"
import { endpointLabel } from "../../../domain/endpoint.ts"
import { present } from "../../../domain/record.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import {
  ExplainedDelivery,
  explainDelivery,
  type RoundView,
  readDeliveryId
} from "../../../operations/deliveries/explain-delivery.ts"
import { ResentDelivery } from "../../../operations/deliveries/resend-delivery.ts"
import { readInput } from "../../../operations/input.ts"
import { rangeProblems } from "../../../operations/parameters.ts"
import {
  type RetriedDelivery as Delivery,
  RetriedDelivery,
  RetriedEndpoint,
  retryDelivery,
  retryEndpointNow
} from "../../../operations/retries/retry-endpoint.ts"
import { RetrySelection } from "../../../operations/retries/retry-waiting.ts"
import { attemptsText } from "../../../text/fact-line.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, localTimeMs, plural, spanText } from "../../../text/quantities.ts"
import { roundText } from "../../../text/round-text.ts"
import { flagProblems } from "../../flags/flag-problems.ts"
import {
  byFlag,
  endpointArgument,
  isSet,
  repeated,
  tenantFlag,
  textFlag,
  thisUser,
  timeFlag
} from "../../flags/shared.ts"
import { redirectLines, responseLines, shortResponseLines } from "../../format/answer.ts"
import { labelled, screenWidth, wrapped } from "../../format/screen.ts"
import { refusal } from "../../refused.ts"
import { connected, petrel, report } from "../../root-command.ts"
import { print, remark } from "../../terminal/stdout.ts"
import { lagText } from "../projection.ts"

const deliveryIdArgument = Argument.String("ID").pipe(
  Argument.withDescription("<event id>.<endpoint id>, as the history shows it"),
  Argument.filterMap(
    (text) => (readDeliveryId(text) === undefined ? Option.none() : Option.some(text)),
    () =>
      "must be <event id>.<endpoint id>, such as acme.invoice-42.billing; `petrel history --event ID` lists an event's deliveries"
  )
)

const beginnings = { routed: "routed", redelivered: "sent again", replayed: "replayed" } as const

/** Explains why a delivered round may have a dead letter. */
const lateLine = (dead: number | undefined): string =>
  `  Delivered late: recorded by a worker that no longer owned the partition.${dead === undefined ? "" : ` It resolves dead letter ${dead}.`}`

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
        : `next at ${localTimeMs(nextAttemptAt, now)}`
  ].join("  ")
}

const indent = "    "

/** What the receiver answered: its beginning, or all that is kept of it. */
const answerLines = (
  { redirects, response }: RoundView["attempts"][number],
  isWhole: boolean,
  width: number | undefined
): ReadonlyArray<string> => {
  const columns = width === undefined ? undefined : width - indent.length
  return [
    ...wrapped(redirectLines(redirects), columns),
    ...(response === undefined
      ? []
      : isWhole
        ? wrapped(responseLines(response), columns)
        : shortResponseLines(response, columns))
  ].map((line) => `${indent}${line}`.trimEnd())
}

/** Returns which one a delivery is of all that wait in its endpoint's backlog. */
const standingText = ({ of, position }: NonNullable<RoundView["waitsIn"]>): string =>
  of === undefined || position === undefined
    ? ""
    : `, ${countText(position)} of the ${countText(of)} that wait for its endpoint`

const roundLines = (round: RoundView, now: number, isWhole: boolean): ReadonlyArray<string> => {
  const width = screenWidth()
  const {
    attempts,
    begun,
    discardedAt,
    end,
    holds,
    inMemory,
    lastAttempt,
    repeats,
    state,
    waitsIn
  } = round
  const at = (time: number) => localTimeMs(time, now)
  const line = (time: number, text: string) =>
    labelled(`  ${at(time)}  `, plainText(text), width).join("\n")
  const deadline = begun?.deadline ?? waitsIn?.deadline ?? undefined
  return [
    ...(begun === null
      ? ["  Its beginning is no longer in the history."]
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
    ...(repeats === 0 ? [] : [`  ${repeats} facts repeat earlier ones.`]),
    ...(holds ?? []).flatMap(({ freedBy, says }) => [
      ...labelled("  waits    ", plainText(says), width),
      ...labelled("           freed by: ", plainText(freedBy), width)
    ]),
    ...(waitsIn === undefined || waitsIn === null
      ? []
      : [`  in       message ${waitsIn.seq} of ${waitsIn.stream}${standingText(waitsIn)}`]),
    ...(inMemory === undefined
      ? []
      : [`  memory   ${inMemory.mode} in worker ${inMemory.worker}, ${spanText(inMemory.forMs)}`]),
    ...(state !== "open" || deadline === undefined ? [] : [`  expires  ${at(deadline)}`])
  ]
}

const encodeExplained = jsonOf(ExplainedDelivery)

/** Shows the rounds of one delivery, and what blocks it. */
const deliveryShow = Command.make(
  "show",
  {
    id: deliveryIdArgument,
    tenant: tenantFlag,
    answers: isSet("answers", "Show the receiver's answers as they are kept: headers and body")
  },
  Effect.fnUntraced(function* ({ answers, id, tenant }) {
    const { json } = yield* petrel
    const found = yield* explainDelivery(id, tenant).pipe(Effect.provide(connected))
    if (json) return yield* print(JSON.stringify(encodeExplained(found)))
    const { endpoint, event, eventSeq, lag, rounds, trace } = found
    const now = yield* Clock.currentTimeMillis
    yield* print(`${plainText(event ?? `event ${eventSeq}`)} → ${found.tenant}/${endpoint}`)
    if (trace !== undefined) yield* print(`  trace    ${plainText(trace)}`)
    for (const round of rounds) {
      if (rounds.length > 1) yield* print(roundText(round.round))
      yield* Effect.forEach(roundLines(round, now, answers), print, { discard: true })
    }
    if (!answers && rounds.some(({ attempts }) => attempts.some(({ response }) => response)))
      yield* remark("With --answers: the receiver's answers with their headers.")
    if (lag !== undefined)
      yield* remark(`From the delivery log, which is ${lagText(lag)} the history.`)
  })
).pipe(Command.withDescription("Show the life of one delivery, and what it waits for"))

/** Imported on demand: other commands do not need the engine. */
const operation = Effect.promise(() => import("../../../operations/deliveries/resend-delivery.ts"))

const encode = jsonOf(ResentDelivery)

/** Sends one delivery again. */
const deliveryResend = Command.make(
  "resend",
  { id: deliveryIdArgument, tenant: tenantFlag, by: byFlag },
  Effect.fnUntraced(function* ({ by, id, tenant }) {
    const { resendDelivery } = yield* operation
    const sent = yield* resendDelivery(id, tenant, by).pipe(Effect.provide(connected))
    const shown = plainText(id)
    yield* report(
      encode(sent),
      `${shown} is sent again (replay ${sent.replay}): \`petrel delivery show ${shown}\` shows what becomes of it`
    )
  })
).pipe(
  Command.withDescription(
    "Send a delivery once more, even one that succeeded, in a new round: the same id and bytes, attempts counted from 1"
  ),
  Command.withShortDescription("Send a delivery once more"),
  Command.withExamples([{ command: "petrel delivery resend acme.invoice-42.billing" }])
)

const encodeDelivery = jsonOf(RetriedDelivery)
const encodeEndpoint = jsonOf(RetriedEndpoint)

const ignoreFlag = isSet(
  "ignore-retry-after",
  "Do not wait for the end of the Retry-After that the receiver asked for"
)

const stateTexts: Readonly<Record<Delivery["state"], string>> = {
  moved: "goes on now",
  "in-flight": "is being attempted, or about to be",
  backlog: "waits for its endpoint and is sent as soon as the endpoint takes it",
  left: "stays as it is: its endpoint's backlog is full, or the broker refused; ask again later"
}

const withPace = (says: string, pace: ReadonlyArray<string>): string =>
  [`${says}. From here on:`, ...pace.map((line) => `  ${line}`)].join("\n")

/** Returns what became of waiting deliveries that were to be tried now. */
export const counted = ({ inBacklog, inFlight, left, moved }: Retried): string => {
  const all = [
    ...(moved === 0 ? [] : [`${plural(moved, "delivery goes", "deliveries go")} on now`]),
    ...(inFlight === 0 ? [] : [`${countText(inFlight)} in flight or in line already`]),
    ...(inBacklog === 0 ? [] : [`${countText(inBacklog)} in the backlog already`]),
    ...(left === 0
      ? []
      : [
          `${countText(left)} stay as they are: the backlog is full, or the broker refused; ask again later`
        ])
  ]
  return all.length === 0 ? "nothing waits for it" : all.join(", ")
}

/** Tries one delivery now. */
const deliveryRetry = Command.make(
  "retry",
  { id: deliveryIdArgument, tenant: tenantFlag, ignoreRetryAfter: ignoreFlag },
  Effect.fnUntraced(function* ({ id, ignoreRetryAfter, tenant }) {
    const request = { ignoreRetryAfter }
    const retried = yield* retryDelivery(id, tenant, request, thisUser()).pipe(
      Effect.provide(connected)
    )
    const says = `${plainText(id)} ${stateTexts[retried.state]}`
    yield* report(encodeDelivery(retried), withPace(says, retried.pace))
  })
).pipe(
  Command.withDescription(
    "Try a waiting delivery now. It is an attempt like any other. If the endpoint's circuit is open, the probe comes at once, too"
  ),
  Command.withShortDescription("Try a waiting delivery now"),
  Command.withExamples([{ command: "petrel delivery retry acme.invoice-42.billing" }])
)

const { endpoint: _, ignoreRetryAfter: __, tenant: ___, ...narrowing } = RetrySelection.fields
const Narrowing = Schema.Struct(narrowing)

/** Returns which waiting deliveries flags mean; undefined for all. */
const readFilter = Effect.fnUntraced(function* ({
  types,
  ...flags
}: {
  readonly types: ReadonlyArray<string>
  readonly status: string | undefined
  readonly error: string | undefined
  readonly since: number | undefined
  readonly until: number | undefined
}) {
  const given = present({ ...flags, types: types.length === 0 ? undefined : types })
  if (Object.keys(given).length === 0) return undefined
  const read = readInput(Narrowing, given)
  const problems = Result.isFailure(read)
    ? read.failure
    : rangeProblems(read.success, yield* Clock.currentTimeMillis)
  if (Result.isFailure(read) || problems.length > 0)
    return yield* refusal(flagProblems(problems, { types: "--type" }))
  return read.success
})

/** Tries all deliveries of an endpoint now. */
export const endpointRetryNow = Command.make(
  "retry-now",
  {
    name: endpointArgument,
    types: repeated("type", "FILTER", "Only of this type: 'invoice.>'; may be repeated"),
    status: textFlag(
      "status",
      "STATUS",
      "Only those with this status of the last answer: 503, or 5xx"
    ),
    error: textFlag(
      "error",
      "CLASS",
      "Only those with this error class of the last attempt, such as timeout"
    ),
    since: timeFlag("since", "Attempted last from then on: 2026-03-04T10:30:00Z, or ago: 15m"),
    until: timeFlag("until", "Attempted last up to then, in the same form"),
    ignoreRetryAfter: ignoreFlag
  },
  Effect.fnUntraced(function* ({ ignoreRetryAfter, name, ...flags }) {
    const filter = yield* readFilter(flags)
    const how = { ignoreRetryAfter, ...(filter === undefined ? {} : { filter }) }
    const retried = yield* retryEndpointNow(name, how, thisUser()).pipe(Effect.provide(connected))
    yield* report(
      encodeEndpoint(retried),
      withPace(`${endpointLabel(name)}: ${counted(retried)}`, retried.pace)
    )
  })
).pipe(
  Command.withDescription(
    "Try all waiting deliveries of an endpoint now, for example after a fix: within its cap, rate and ramp, beginning with a probe if its circuit is open"
  ),
  Command.withShortDescription("Try all waiting deliveries of an endpoint now"),
  Command.withExamples([
    { command: "petrel endpoint retry-now acme/billing" },
    { command: "petrel endpoint retry-now acme/billing --status 5xx --type 'invoice.>'" }
  ])
)

/** Commands for single deliveries. */
export const delivery = Command.make("delivery").pipe(
  Command.withDescription(
    "See what became of a delivery or what it waits for, try it now, or send it once more"
  ),
  Command.withSubcommands([deliveryShow, deliveryRetry, deliveryResend])
)
