import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { firstIncoming } from "../broker/survey-intake.ts"
import { idToken } from "../domain/intake.ts"
import { endpointHash } from "../domain/names.ts"
import { spanText } from "../text/quantities.ts"
import { timers } from "../time/timers.ts"
import type { AuditedRow, OutboxTable } from "./outbox-table.ts"

/** What is wrong with a row. */
export type OutboxProblemKind =
  /** It has waited for more than a minute, or nobody can say for how long. */
  | "unpublished"
  /** The same, for longer than the intake remembers: it may be an event already. */
  | "perhaps-published"
  /** It was published, and the intake does not have it. */
  | "outbox-lost"
  /** It can never be published as it is, and nobody has decided what becomes of it. */
  | "set-aside"

export interface OutboxProblem {
  readonly kind: OutboxProblemKind
  readonly tenant: string
  readonly event: string
  readonly text: string
}

/** What an audit of an outbox has found. */
export interface OutboxAudit {
  readonly rows: number
  /** Published, and in the intake. */
  readonly published: number
  /** They wait for less than a minute. */
  readonly underWay: number
  readonly discarded: number
  /** Published, and older than what the intake still has: nothing can be said of them here. */
  readonly uncertain: number
  readonly counts: Readonly<Record<OutboxProblemKind, number>>
  /** The first of each kind. */
  readonly problems: ReadonlyArray<OutboxProblem>
}

/** A row may wait for so long without being a problem, ms. */
const mayWaitMs = 60_000
/** Problems of each kind that are named. */
const mostNamed = 100

/** The subjects of a stream, as a hash for each sequence. */
class SubjectHashes {
  readonly #first: number
  #hashes = new Uint32Array(1_024)
  #has = new Uint8Array(1_024)

  constructor(first: number) {
    this.#first = first
  }

  add(seq: number, subject: string): void {
    const at = seq - this.#first
    if (at >= this.#hashes.length) {
      const length = Math.max(at + 1, this.#hashes.length * 2)
      const hashes = new Uint32Array(length)
      hashes.set(this.#hashes)
      const has = new Uint8Array(length)
      has.set(this.#has)
      this.#hashes = hashes
      this.#has = has
    }
    this.#hashes[at] = endpointHash(subject)
    this.#has[at] = 1
  }

  has(seq: number, subject: string): boolean {
    const at = seq - this.#first
    return this.#has[at] === 1 && this.#hashes[at] === endpointHash(subject)
  }
}

/** Reads which rows of outboxes the intake has: 5 bytes of memory for each of its messages. */
const readIntake = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo(`look at ${names.intake}`, names.intake)
  const event = yield* firstIncoming
  const first = event?.seq ?? state.last_seq + 1
  const hashes = new SubjectHashes(first)
  yield* readThrough(
    {
      stream: names.intake,
      subjects: [names.subjects.incomingRow("*", ">")],
      from: first,
      to: state.last_seq,
      headersOnly: true
    },
    ({ message, seq }) => hashes.add(seq, message.subject)
  )
  // Before the first message of all nothing is forgotten.
  const remembersFrom = first === 1 ? 0 : (event?.time.getTime() ?? Number.POSITIVE_INFINITY)
  return { first, hashes, remembersFrom }
})

/** Returns what is wrong with a row that has waited for too long. */
const waitingProblem = Effect.fnUntraced(function* (
  { ageMs, eventId, tenant }: AuditedRow,
  remembersFrom: number
) {
  const { names, readMessage } = yield* Broker
  const waited =
    ageMs === undefined
      ? "waits, and its created_at is infinite: a relay sets it aside"
      : `has waited for ${spanText(ageMs)}`
  const there = yield* readMessage(`look at ${names.intake}`, names.intake, {
    last_by_subj: `${names.subjects.incomingRow(tenant, idToken(eventId))}.>`
  })
  if (there !== null)
    return {
      kind: "unpublished",
      text: `is ${there.seq} of ${names.intake}, and is not noted as published: a relay notes it`
    } as const
  return ageMs !== undefined && timers.wallMs() - ageMs < remembersFrom
    ? ({
        kind: "perhaps-published",
        text: `${waited}, for longer than ${names.intake} remembers: if it is an event already, a relay publishes it again, with the same id`
      } as const)
    : ({ kind: "unpublished", text: waited } as const)
})

/**
 * Compares all rows of an outbox with the intake. What is published meanwhile is not looked at.
 * Reads nothing that the relay has said, and nothing of the relay's code but the table's columns.
 */
export const auditOutbox = Effect.fnUntraced(function* (table: OutboxTable) {
  const { names } = yield* Broker
  const now = yield* table.now
  const { first, hashes, remembersFrom } = yield* readIntake
  const counts = { unpublished: 0, "perhaps-published": 0, "outbox-lost": 0, "set-aside": 0 }
  const problems: Array<OutboxProblem> = []
  const sums = { rows: 0, published: 0, underWay: 0, discarded: 0, uncertain: 0 }
  const problem = ({ eventId, tenant }: AuditedRow, kind: OutboxProblemKind, text: string) => {
    if (++counts[kind] <= mostNamed) problems.push({ kind, tenant, event: eventId, text })
  }
  const seeWaiting = Effect.fnUntraced(function* (row: AuditedRow) {
    // Each is looked up: of many that wait it is said for the first only.
    if (counts.unpublished + counts["perhaps-published"] >= mostNamed)
      return problem(row, "unpublished", "")
    const { kind, text } = yield* waitingProblem(row, remembersFrom)
    problem(row, kind, text)
  })
  const see = (row: AuditedRow): void => {
    sums.rows++
    const { eventId, intakeSeq, tenant, type } = row
    if (row.isDiscarded) sums.discarded++
    else if (row.isSetAside) problem(row, "set-aside", row.error ?? "set aside")
    else if (!row.isPublished) sums.underWay++
    else if (intakeSeq === undefined)
      problem(row, "outbox-lost", "is marked as published, without a sequence")
    else if (intakeSeq < first) sums.uncertain++
    else if (
      hashes.has(intakeSeq, `${names.subjects.incomingRow(tenant, idToken(eventId))}.${type}`)
    )
      sums.published++
    else problem(row, "outbox-lost", `is not ${intakeSeq} of ${names.intake}`)
  }
  let after: AuditedRow | undefined
  do {
    const page = yield* table.auditedRows(after, now)
    for (const row of page.rows) {
      const isWaiting =
        !row.isPublished && !row.isSetAside && (row.ageMs ?? Number.POSITIVE_INFINITY) > mayWaitMs
      if (isWaiting) {
        sums.rows++
        yield* seeWaiting(row)
      } else see(row)
    }
    after = page.next
  } while (after !== undefined)
  return { ...sums, counts, problems } satisfies OutboxAudit
})

/** True if nothing is lost, waits for too long or was set aside. */
export const isClean = ({ counts }: OutboxAudit): boolean =>
  Object.values(counts).every((count) => count === 0)
