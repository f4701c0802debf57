import { Effect, Option, Schema, Struct } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readBatch } from "../../broker/scan.ts"
import { firstRound } from "../../domain/delivery.ts"
import { Fact, isSuccess } from "../../domain/fact.ts"
import type { Names } from "../../domain/names.ts"
import { Redirect, Response } from "../../domain/outcome.ts"
import { present } from "../../domain/record.ts"
import { readFact, readFactText } from "../../history/delivery-facts.ts"
import { AttemptRow } from "../../projection/delivery-log.ts"

/** Attempts of one delivery whose answers are shown: the newest. An answer has 1 KiB and headers. */
const maxAnswers = 100
/** Facts that are read at once: a usual page of attempts. Requests of one turn go out in one write. */
const readAtOnce = 64
/** Most that one request for many facts may answer with, bytes: some 1,000 of them. */
const maxBytesTogether = 1_048_576

/** What a receiver answered and when, as far as it is kept. */
export const AnswerView = Schema.Struct({
  connectMs: Schema.optionalKey(Schema.Number).annotateKey({
    description: "How long it took to connect, ms, if a connection was made for it."
  }),
  firstByteMs: Schema.optionalKey(Schema.Number).annotateKey({
    description: "When the answer began, ms since the beginning of the attempt."
  }),
  response: Schema.optionalKey(Response).annotateKey({
    description: "Absent if there was none, or if it is not kept."
  }),
  redirects: Schema.optionalKey(Schema.Array(Redirect)).annotateKey({
    description: "The redirects that were followed. `response` is the answer of the last address."
  })
})
export type AnswerView = typeof AnswerView.Type

/** What tells one attempt of a delivery from all others. */
interface AttemptName {
  readonly number: number
  readonly at: number
  readonly worker?: string | undefined
}

const nameOf = (round: string, { at, number, worker = "" }: AttemptName): string =>
  `${round} ${number} ${at} ${worker}`

const isAttempt = ({ kind }: Fact): boolean => kind === "attempt-failed" || isSuccess(kind)

/** Finds the answer of an attempt; it is empty if there was none, or if it is not kept. */
export type FindAnswer = (round: string, attempt: AttemptName) => AnswerView

const answerIn = ({
  connectMs,
  firstByteMs,
  redirects,
  response
}: Pick<Fact, keyof AnswerView>): AnswerView =>
  present({ connectMs, firstByteMs, response, redirects })

/** @param facts all facts about one delivery, in the order of the history. */
export const answersIn = (facts: ReadonlyArray<Fact>): FindAnswer => {
  const found = new Map<string, AnswerView>()
  for (const fact of facts.filter(isAttempt).slice(-maxAnswers)) {
    const { at, attempt: number = 0, round = firstRound, worker } = fact
    const name = nameOf(round, { at, number, worker })
    if (!found.has(name)) found.set(name, answerIn(fact))
  }
  return (round, attempt) => found.get(nameOf(round, attempt)) ?? {}
}

/** An attempt of the log, with what its receiver answered. */
export const AttemptView = Schema.Struct({ ...AttemptRow.fields, ...AnswerView.fields })
export type AttemptView = typeof AttemptView.Type

/** What of a fact tells which attempt it is of, and its answer: all of it costs twice as much. */
const AnsweringFact = Schema.Struct(
  Struct.pick(Fact.fields, [
    ...(["at", "attempt", "endpoint", "eventAt", "eventSeq", "tenant"] as const),
    ...(["connectMs", "firstByteMs", "redirects", "response"] as const)
  ])
)
const decodeAnswering = Schema.decodeUnknownOption(Schema.fromJsonString(AnsweringFact))

/** Whether a fact is of an attempt: a truncated history assigns sequences again. */
const isOf = (
  { at, attempt = 0, endpoint, eventAt, eventSeq, tenant }: typeof AnsweringFact.Type,
  row: AttemptRow
): boolean =>
  at === row.at &&
  attempt === row.number &&
  tenant === row.tenant &&
  endpoint === row.endpoint &&
  eventSeq === row.eventSeq &&
  eventAt === row.eventAt

/** The narrowest subject that the facts of some attempts have. */
const subjectOf = (rows: ReadonlyArray<AttemptRow>, { subjects }: Names): string => {
  const only = (values: ReadonlyArray<string>) =>
    new Set(values).size === 1 ? (values[0] ?? "*") : "*"
  const tenant = only(rows.map((row) => row.tenant))
  const endpoint = tenant === "*" ? "*" : only(rows.map((row) => row.endpoint))
  return tenant === "*" ? subjects.allFacts : subjects.fact(tenant, endpoint, "*", "*")
}

/**
 * Reads the texts of facts that mostly lie close together, by one request: of each attempt that a page
 * has there may be one other fact. A replica may answer that does not have the newest.
 */
const readTogether = Effect.fnUntraced(function* (rows: ReadonlyArray<AttemptRow>) {
  const { names } = yield* Broker
  const wanted = new Set(rows.map(({ seq }) => seq))
  const limits = { batch: 2 * rows.length, max_bytes: maxBytesTogether }
  const first = Math.min(...wanted)
  const read = yield* readBatch(names.history, subjectOf(rows, names), first, limits)
  return new Map(
    read.flatMap((message) => (wanted.has(message.seq) ? [[message.seq, message.string()]] : []))
  )
})

/** Adds to attempts of the log what their receivers answered, which the history has. */
export const withAnswers = Effect.fnUntraced(function* (attempts: ReadonlyArray<AttemptRow>) {
  const texts = attempts.length > 1 ? yield* readTogether(attempts) : new Map<number, string>()
  const missing = attempts.filter(({ seq }) => !texts.has(seq))
  yield* Effect.forEach(
    missing,
    ({ seq }) =>
      Effect.map(readFactText(seq), (text) => {
        if (text !== undefined) texts.set(seq, text)
      }),
    { concurrency: readAtOnce, discard: true }
  )
  return attempts.map((row): AttemptView => {
    const fact = Option.filter(decodeAnswering(texts.get(row.seq)), (one) => isOf(one, row))
    return Option.match(fact, {
      onNone: () => row,
      onSome: (own) => ({ ...row, ...answerIn(own) })
    })
  })
})

/**
 * Reads the facts of a delivery's newest attempts, which have more than the delivery log.
 *
 * @param seqs the sequences of the attempts' facts in HISTORY.
 * @param isAbout whether a fact is about the delivery: a truncated history assigns sequences again.
 */
export const readAttemptFacts = Effect.fnUntraced(function* (
  seqs: ReadonlyArray<number>,
  isAbout: (fact: Fact) => boolean
) {
  const newest = seqs.toSorted((a, b) => a - b).slice(-maxAnswers)
  const read = yield* Effect.forEach(newest, readFact, { concurrency: readAtOnce })
  return read.flatMap((fact) => Option.toArray(fact)).filter(isAbout)
})
