import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import {
  eraseValue,
  isConflict,
  readEntry,
  readValues,
  type StoredValue,
  writeValue
} from "../broker/values.ts"
import { Timestamp } from "../domain/timestamp.ts"
import { Token } from "../domain/token.ts"
import { timers } from "../time/timers.ts"

/** What a relay last said of its outbox. */
export const OutboxReport = Schema.Struct({
  v: Schema.Literal(1),
  name: Token.annotateKey({ description: "The name of the outbox." }),
  at: Timestamp.annotateKey({ description: "When it said so." }),
  relay: Schema.String.annotateKey({ description: "The process." }),
  pending: Schema.Int.annotateKey({
    description: "Rows that wait to be published, counted up to 100,000."
  }),
  oldestMs: Schema.Number.annotateKey({
    description: "How long the oldest of them has waited, ms."
  }),
  setAside: Schema.Int.annotateKey({
    description:
      "Rows that can never be published as they are, and that nobody has released or discarded."
  }),
  countedAt: Schema.optionalKey(Timestamp).annotateKey({
    description:
      "When it last counted the rows, if it has no session of the database now; absent if it counts."
  }),
  problem: Schema.optionalKey(Schema.String).annotateKey({
    description: "What keeps it from publishing, one sentence; absent if nothing does."
  }),
  problemMs: Schema.optionalKey(Schema.Number).annotateKey({
    description: "How long it has had its problem, ms."
  })
})
export type OutboxReport = typeof OutboxReport.Type

/** A relay that has said nothing for so long is not running, ms. It speaks every 5 s. */
export const silentAfterMs = 30_000

const prefix = "outbox."
const keyOf = (name: string): string => `${prefix}${name}`
const json = Schema.fromJsonString(OutboxReport)
const decode = Schema.decodeUnknownOption(json)
const encode = Schema.encodeSync(json)

/**
 * Returns what the relays of all outboxes last said, by name.
 *
 * @param values of the bucket of workers.
 */
export const outboxReportsIn = (values: ReadonlyArray<StoredValue>): ReadonlyArray<OutboxReport> =>
  values
    .filter(({ key }) => key.startsWith(prefix))
    .flatMap(({ text }) => Option.toArray(decode(text)))
    .toSorted((a, b) => a.name.localeCompare(b.name))

/** Reads what the relays of all outboxes last said, by name. */
export const readOutboxReports = Effect.gen(function* () {
  const { names } = yield* Broker
  const values = yield* Stream.runCollect(readValues(names.buckets.workers, `${prefix}*`))
  return outboxReportsIn(values)
})

/** Forgets an outbox that is no more. Returns false if there is no report of it. */
export const forgetOutbox = Effect.fnUntraced(function* (name: string) {
  const { names } = yield* Broker
  const { text } = yield* readEntry(names.buckets.workers, keyOf(name))
  if (text === undefined) return false
  yield* eraseValue(names.buckets.workers, keyOf(name))
  return true
})

/** Another relay's report over one of a relay that publishes: twice within this time, ms, is no takeover. */
const contestedWithinMs = 60_000

/** Writes the reports of one relay. */
export class OutboxReporter {
  /** The revision of its last report; undefined if another relay may have written since. */
  #revision: number | undefined
  /** The revision of its last report, whoever may have written since. */
  #last = Number.POSITIVE_INFINITY
  /** When another relay's report over its own was found first and last, ms of the monotonic clock. */
  #rival: { readonly since: number; readonly at: number } | undefined

  /**
   * The problem that another relay reports under the same name, though this one publishes: they serve
   * two outboxes, and who reads their reports sees now the one, now the other. Undefined if none does.
   */
  get contested(): Pick<OutboxReport, "problem" | "problemMs"> | undefined {
    const now = timers.monotonicMs()
    const { at = 0, since = at } = this.#rival ?? {}
    if (since === at || now - at > contestedWithinMs) return undefined
    return {
      problem:
        "another relay reports under the same name: if it serves another outbox, give one of them another name",
      problemMs: now - since
    }
  }

  /**
   * Writes a report. A relay that does not publish now writes only over a report of its own: another
   * relay may publish.
   */
  readonly write = Effect.fnUntraced(
    { self: this },
    function* (report: OutboxReport, isPublishing: boolean) {
      if (this.#revision === undefined && !isPublishing) return
      const { names } = yield* Broker
      const store = (expected: number) =>
        writeValue(names.buckets.workers, keyOf(report.name), encode(report), { expected }).pipe(
          Effect.catchIf(isConflict, () => Effect.succeed(undefined))
        )
      let written = yield* store(this.#revision ?? (yield* this.#look(report)).revision)
      if (written === undefined) {
        // A report whose answer has not come may be stored.
        const { isOwn, revision } = yield* this.#look(report)
        if (isOwn) written = yield* store(revision)
      }
      this.#revision = written?.seq
      if (written !== undefined) this.#last = written.seq
    }
  )

  /** Reads whose report there is, and its revision. */
  readonly #look = Effect.fnUntraced({ self: this }, function* ({ name, relay }: OutboxReport) {
    const { names } = yield* Broker
    const { revision, text } = yield* readEntry(names.buckets.workers, keyOf(name))
    const there = Option.getOrUndefined(decode(text))
    if (there !== undefined && there.relay !== relay && revision > this.#last) {
      const now = timers.monotonicMs()
      const { at = 0, since = now } = this.#rival ?? {}
      this.#rival = { since: now - at > contestedWithinMs ? now : since, at: now }
    }
    return { revision, isOwn: there?.relay === relay }
  })
}

/** How long an outbox is stuck, ms; 0 if it is not: its oldest row, a problem, or a silent relay. */
export const stuckMs = (
  { at, oldestMs, pending, problemMs = 0 }: OutboxReport,
  now: number
): number => {
  const silentMs = now - at
  if (silentMs > silentAfterMs) return silentMs
  return Math.max(problemMs, pending > 0 ? oldestMs : 0)
}
