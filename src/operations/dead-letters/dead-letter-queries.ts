import { Effect, Schema, Stream } from "effect"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { namesOf, Progress } from "../../domain/delivery.ts"
import { usualHeaderNames } from "../../domain/header-names.ts"
import { DeadReason } from "../../domain/outcome.ts"
import { present } from "../../domain/record.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { type Fate, readFates } from "../../history/dead-fates.ts"
import {
  type DeadLetter,
  type DeadLetterOwner,
  type DeadLetterQuery,
  getDeadLetter,
  getDeadLetters,
  readDeadLetters,
  readDeadLettersBefore,
  type WholeDeadLetter
} from "../../history/dead-letters.ts"
import { readFactText } from "../../history/delivery-facts.ts"
import { FactRecord } from "../../history/fact-record.ts"
import { type LateDelivery, readLateDeliveries } from "../../history/late-deliveries.ts"
import { type FactQuery, makePicker, readFacts, type StoredFact } from "../../history/read.ts"
import { textOf } from "../../text/plain-text.ts"
import { askLog } from "../history/history-readings.ts"
import { DeadLettersNotFound } from "../refusals.ts"

const { nextAttemptAt: _, ...attempted } = Progress.fields

/** The round that a redelivery of a dead letter began. Times in ms since the epoch. */
export const Redelivery = Schema.Struct({
  round: Schema.String.annotateKey({
    description: "Which round of the delivery: `0` is the first."
  }),
  at: Timestamp.annotateKey({ description: "When." }),
  by: Schema.optional(Schema.String).annotateKey({ description: "Who asked for it." }),
  outcome: Schema.Literals(["waiting", "delivered", "delivered-late", "dead-lettered"]).annotateKey(
    { description: "`waiting` while the round is open, otherwise how it ended." }
  ),
  endedAt: Schema.optional(Timestamp).annotateKey({ description: "When it ended." }),
  dead: Schema.optional(Schema.Int).annotateKey({
    description: "Id of the new dead letter, if the round was dead-lettered."
  })
})
export type Redelivery = typeof Redelivery.Type

/** A delivery that ended without success. Times in ms since the epoch. */
export const DeadLetterView = Schema.Struct({
  id: Schema.Int,
  tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
  event: Schema.String.annotateKey({ description: "The event's id." }),
  eventSeq: Schema.Int.annotateKey({
    description: "The sequence of the event in the event stream."
  }),
  eventAt: Timestamp.annotateKey({ description: "When the event was stored." }),
  type: Schema.String.annotateKey({ description: "The type of the event." }),
  round: Schema.String.annotateKey({
    description: "Which round of the delivery: `0` is the first."
  }),
  reason: DeadReason,
  ...attempted,
  deadline: Timestamp,
  deadAt: Timestamp,
  origin: Schema.optionalKey(Schema.String).annotateKey({
    description: "The place that its message was moved from."
  }),
  redelivered: Schema.optionalKey(Redelivery),
  /** A former owner recorded a success: the receiver has it. */
  deliveredLate: Schema.optionalKey(
    Schema.Struct({
      at: Timestamp.annotateKey({ description: "When." }),
      worker: Schema.optional(Schema.String).annotateKey({ description: "The id of the worker." })
    })
  )
})
export type DeadLetterView = typeof DeadLetterView.Type

/** Returns a dead letter, what came of sending it again, and its late success. */
const deadLetterView = (
  { deadAt, delivery, id, reason }: DeadLetter,
  fate?: Fate,
  late?: LateDelivery
): DeadLetterView => {
  const { deadline, origin, progress } = delivery
  const { nextAttemptAt: _, ...attempts } = progress
  return {
    ...{ id, ...namesOf(delivery), reason, ...attempts, deadline, deadAt },
    ...present({ origin, redelivered: fate, deliveredLate: late })
  }
}

/** Where a page of dead letters is: behind an id, or the last ones before it. */
export const DeadLetterPosition = Schema.Union([
  Schema.Struct({ after: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)) }),
  Schema.Struct({ before: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)) })
])
type DeadLetterPosition = typeof DeadLetterPosition.Type

/** A page of dead letters, oldest first, and where those next to it are. */
interface DeadLetterPage {
  readonly deadLetters: ReadonlyArray<DeadLetterView>
  readonly next: DeadLetterPosition | undefined
  readonly previous: DeadLetterPosition | undefined
}

/** Which dead letters are listed; of several values of one filter any holds. */
interface DeadLetterListing extends Omit<DeadLetterQuery, "after" | "upTo"> {
  /** Ids. (Default: any) */
  readonly id?: ReadonlyArray<number> | undefined
  /** Only open ones: neither sent again nor delivered late. Those discarded are not stored. */
  readonly open?: boolean | undefined
}

/** Returns whose facts say what became of dead letters. */
const ownerOf = ({ endpoint, tenant }: DeadLetterQuery): DeadLetterOwner => {
  const endpoints = endpoint === undefined ? [] : [endpoint].flat()
  return { tenant, endpoint: endpoints.length === 1 ? endpoints[0] : undefined }
}

const isOpen = ({ deliveredLate, redelivered }: DeadLetterView): boolean =>
  deliveredLate === undefined && redelivered === undefined

/** Dead letters that a page of open ones looks at, however few of them are open. */
const maxSearched = 1_000

/** Returns what became of dead letters, oldest first. */
const viewsOf = Effect.fnUntraced(function* (
  letters: ReadonlyArray<DeadLetter>,
  owner: DeadLetterOwner
) {
  const [oldest] = letters
  if (oldest === undefined) return []
  // A dead letter is sent again only after it was stored.
  const since = oldest.deadAt - maxClockSkewMs
  const [fates, late] = yield* Effect.all(
    [
      readFates(owner, { since, ids: new Set(letters.map(({ id }) => id)) }),
      readLateDeliveries(owner)
    ],
    { concurrency: 2 }
  )
  return letters.map((letter) =>
    deadLetterView(letter, fates.get(letter.id), late(letter.delivery))
  )
})

/**
 * Reads a page of the dead letters that a filter selects, and what became of each. One of open dead
 * letters looks at 1,000 at most: it may be shorter than asked for, and yet have one next to it.
 *
 * @param at where it is. (Default: at the oldest)
 */
export const pageDeadLetters = Effect.fnUntraced(function* (
  { open = false, ...filter }: DeadLetterQuery & { readonly open?: boolean | undefined },
  at: DeadLetterPosition = { after: 0 },
  limit: number
) {
  const most = open ? Math.max(limit, maxSearched) : limit
  const owner = ownerOf(filter)
  const chosenOf = (letters: ReadonlyArray<DeadLetter>) =>
    Effect.map(viewsOf(letters, owner), (views) => (open ? views.filter(isOpen) : views))
  if ("before" in at) {
    const found = yield* readDeadLettersBefore(filter, at.before, most + 1)
    const searched = found.slice(-most)
    const chosen = yield* chosenOf(searched)
    const deadLetters = chosen.slice(-limit)
    const first = chosen.length > limit ? deadLetters : found.length > most ? searched : []
    const previous = first[0] === undefined ? undefined : { before: first[0].id }
    const page: DeadLetterPage = { deadLetters, previous, next: { after: at.before - 1 } }
    return page
  }
  // Mostly the first ones are open: the others are read only where too few of them are.
  let [searched, chosen]: [ReadonlyArray<DeadLetter>, ReadonlyArray<DeadLetterView>] = [[], []]
  let isEnd = false
  for (const size of [limit, most - limit]) {
    if (size === 0 || isEnd || (searched.length > 0 && chosen.length >= limit)) break
    const after = searched.at(-1)?.id ?? at.after
    const found = yield* readDeadLetters(
      { ...filter, ...(after === 0 ? {} : { after }) },
      size + 1
    ).pipe(Stream.take(size + 1), Stream.runCollect)
    const part = found.slice(0, size)
    isEnd = found.length <= size
    searched = [...searched, ...part]
    chosen = [...chosen, ...(yield* chosenOf(part))]
  }
  const deadLetters = chosen.slice(0, limit)
  const last = (chosen.length > limit ? deadLetters : isEnd ? [] : searched).at(-1)
  const next = last === undefined ? undefined : { after: last.id }
  const previous = at.after === 0 ? undefined : { before: at.after + 1 }
  const page: DeadLetterPage = { deadLetters, next, previous }
  return page
})

/** A dead letter as a whole: what was sent, and how each attempt went. */
export const DeadLetterDetail = Schema.Struct({
  ...DeadLetterView.fields,
  began: Timestamp.annotateKey({ description: "When its round began." }),
  headers: Schema.Record(Schema.String, Schema.String).annotateKey({
    description:
      "The headers that every receiver gets, by their usual names, without the signature and those of the endpoint's configuration."
  }),
  bytes: Schema.Int.annotateKey({ description: "Size of the body." }),
  body: Schema.optionalKey(Schema.String).annotateKey({ description: "The body, if it is text." }),
  bodyBase64: Schema.optionalKey(Schema.String).annotateKey({
    description: "The body, if it is not text."
  }),
  history: Schema.Array(FactRecord).annotateKey({
    description:
      "The facts of the round's attempts as they are stored, each with its `seq` in the history."
  })
})
export type DeadLetterDetail = typeof DeadLetterDetail.Type

/** Reads dead letters by their ids. Fails if one does not exist: a list would be silent about it. */
const existing = Effect.fnUntraced(function* (filter: DeadLetterQuery, ids: ReadonlyArray<number>) {
  const { letters, missing } = yield* getDeadLetters(ids, filter)
  return missing.length > 0 ? yield* new DeadLettersNotFound({ ids: missing }) : letters
})

/** Reads the dead letters that a filter selects, oldest first, and what became of them. */
export const listDeadLetters = ({ open = false, ...filter }: DeadLetterListing) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { id = [] } = filter
      const owner = ownerOf(filter)
      const fates = yield* readFates(owner, id.length === 0 ? {} : { ids: new Set(id) })
      const late = yield* readLateDeliveries(owner)
      const letters =
        id.length === 0 ? readDeadLetters(filter) : Stream.fromIterable(yield* existing(filter, id))
      const views = Stream.map(letters, (letter) =>
        deadLetterView(letter, fates.get(letter.id), late(letter.delivery))
      )
      return open ? Stream.filter(views, isOpen) : views
    })
  )

/** Facts that are read at once: those of most rounds. */
const readAtOnce = 64

/** Returns the sequences of the facts of the round's failed attempts, where a log has all of them. */
const loggedAttempts = Effect.fnUntraced(function* ({ delivery, id }: WholeDeadLetter) {
  const { endpoint, eventAt, eventSeq, tenant } = delivery
  const found = yield* askLog({ tenant, endpoint, event: `evt_${eventSeq}` })
  const round = found?.rounds.find((one) => one.dead === id && one.eventAt === eventAt)
  // It does not keep facts that repeat others.
  if (round === undefined || round.round !== delivery.round || round.repeats > 0) return undefined
  return round.recorded.filter(({ isSuccess }) => !isSuccess).map(({ seq }) => seq)
})

/**
 * Reads the facts of the attempts of the dead letter's round: those that a log names, else all that
 * failed at the endpoint meanwhile are read to find them.
 */
const attemptsOf = Effect.fnUntraced(function* (letter: WholeDeadLetter) {
  const { delivery, storedAt } = letter
  const { endpoint: id, eventAt, eventSeq, round, tenant } = delivery
  // A truncated history assigns sequences again.
  const isOfRound = ({ fact }: StoredFact) =>
    fact.round === round &&
    fact.eventAt === eventAt &&
    fact.endpoint === id &&
    fact.tenant === tenant
  const query: FactQuery = {
    endpoint: { tenant, id },
    event: `evt_${eventSeq}`,
    kinds: ["attempt-failed"]
  }
  const seqs = yield* loggedAttempts(letter)
  if (seqs === undefined) {
    const meanwhile = { since: delivery.began - maxClockSkewMs, until: storedAt + maxClockSkewMs }
    const facts = readFacts({ ...query, ...meanwhile })
    return yield* Stream.runCollect(Stream.filter(facts, isOfRound))
  }
  const texts = yield* Effect.forEach(seqs, readFactText, { concurrency: readAtOnce })
  const { pick } = makePicker(query)
  return texts.flatMap((text = "", index) => {
    const stored = pick(text, seqs[index] ?? 0)
    return stored !== undefined && isOfRound(stored) ? [stored] : []
  })
})

const headersOf = ({ delivery: { content, event, type } }: WholeDeadLetter) => ({
  [usualHeaderNames.id]: event,
  [usualHeaderNames.type]: type,
  "content-type": content.contentType ?? "application/json",
  ...(content.traceparent === undefined ? {} : { traceparent: content.traceparent }),
  ...(content.tracestate === undefined ? {} : { tracestate: content.tracestate })
})

/** Returns the bytes of a dead letter's body. */
export const bodyOf = ({ body, bodyBase64 }: DeadLetterDetail): Uint8Array =>
  body === undefined ? Buffer.from(bodyBase64 ?? "", "base64") : Buffer.from(body, "utf8")

/**
 * Shows one dead letter. Fails with DeadLettersNotFound if there is none of this id (any more).
 *
 * @param tenant only if it is of this tenant. Of another one's nothing more is read than of one that
 *   is not there.
 */
export const showDeadLetter = Effect.fnUntraced(function* (id: number, tenant?: string) {
  const letter = yield* getDeadLetter(id)
  if (letter === undefined || (tenant !== undefined && letter.delivery.tenant !== tenant))
    return yield* new DeadLettersNotFound({ ids: [id] })
  const { delivery } = letter
  const query = { endpoint: { tenant: delivery.tenant, id: delivery.endpoint } }
  const [facts, fates, late] = yield* Effect.all(
    [attemptsOf(letter), readFates(query, { ids: new Set([id]) }), readLateDeliveries(query)],
    { concurrency: 3 }
  )
  const text = textOf(letter.body)
  return {
    ...deadLetterView(letter, fates.get(id), late(delivery)),
    began: delivery.began,
    headers: headersOf(letter),
    bytes: letter.body.length,
    ...(text === undefined
      ? { bodyBase64: Buffer.from(letter.body).toString("base64") }
      : { body: text }),
    history: facts.map(({ record, seq }) => ({ seq, ...record }))
  } satisfies DeadLetterDetail
})
