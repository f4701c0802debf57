import { Effect, Schema, Stream } from "effect"
import { maxClockSkewMs } from "../../domain/clock-bounds.ts"
import { usualHeaderNames } from "../../domain/header-names.ts"
import { readFates } from "../../history/dead-fates.ts"
import type { WholeDeadLetter } from "../../history/dead-letters.ts"
import { getDeadLetter, getDeadLetters, readDeadLetters } from "../../history/dead-letters.ts"
import { readLateDeliveries } from "../../history/late-deliveries.ts"
import { readFacts } from "../../history/read.ts"
import { textOf } from "../text/utf8.ts"
import { DeadLetterFilter, DeadLettersNotFound } from "./dead-letter-selection.ts"
import { DeadLetterView, deadLetterView } from "./dead-letter-view.ts"

/** A dead letter as a whole: what was sent, and how each attempt went. */
export const DeadLetterDetail = Schema.Struct({
  ...DeadLetterView.fields,
  /** When its round began, ms since the epoch. */
  began: Schema.Number,
  /**
   * The headers that every receiver gets, by their usual names, without the signature and those of
   * the endpoint's configuration.
   */
  headers: Schema.Record(Schema.String, Schema.String),
  /** Size of the body. */
  bytes: Schema.Int,
  /** The body, if it is text. */
  body: Schema.optionalKey(Schema.String),
  /** The body, if it is not text. */
  bodyBase64: Schema.optionalKey(Schema.String),
  /** The facts of the round's attempts as they are stored, each with its `seq` in the history. */
  history: Schema.Array(Schema.Record(Schema.String, Schema.Unknown))
})
export type DeadLetterDetail = typeof DeadLetterDetail.Type

/** Which dead letters are listed. */
export const DeadLetterListing = Schema.Struct({
  ...DeadLetterFilter.fields,
  /** Only open ones: neither sent again nor delivered late. Those discarded are not stored. */
  open: Schema.optional(Schema.Boolean)
})
export type DeadLetterListing = typeof DeadLetterListing.Type

const isOpen = ({ deliveredLate, redelivered }: DeadLetterView): boolean =>
  deliveredLate === undefined && redelivered === undefined

/** Reads dead letters by their ids. Fails if one does not exist: a list would be silent about it. */
const existing = Effect.fnUntraced(function* (
  filter: DeadLetterFilter,
  ids: ReadonlyArray<number>
) {
  const { letters, missing } = yield* getDeadLetters(ids, filter)
  return missing.length > 0 ? yield* new DeadLettersNotFound({ ids: missing }) : letters
})

/** Reads the dead letters that a filter selects, oldest first, and what became of them. */
export const listDeadLetters = ({ open = false, ...filter }: DeadLetterListing) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { id = [] } = filter
      const fates = yield* readFates(filter, id.length === 0 ? {} : { ids: new Set(id) })
      const late = yield* readLateDeliveries(filter)
      const letters =
        id.length === 0 ? readDeadLetters(filter) : Stream.fromIterable(yield* existing(filter, id))
      const views = Stream.map(letters, (letter) =>
        deadLetterView(letter, fates.get(letter.id), late(letter.delivery))
      )
      return open ? Stream.filter(views, isOpen) : views
    })
  )

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

/** Shows one dead letter. Fails with DeadLettersNotFound if there is none of this id (any more). */
export const showDeadLetter = Effect.fnUntraced(function* (id: number) {
  const letter = yield* getDeadLetter(id)
  if (letter === undefined) return yield* new DeadLettersNotFound({ ids: [id] })
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
