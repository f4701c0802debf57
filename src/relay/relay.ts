import { Effect, Queue, type Scope } from "effect"
import type { TableName } from "../outbox/table-name.ts"
import { timers } from "../time/timers.ts"
import { type DatabaseError, isLasting, type Session } from "./database.ts"
import { type NoOutbox, OutboxTable, type PendingRow, type Waiting } from "./outbox-table.ts"

/*
 * One relay of an outbox. It is in one of three states:
 *
 *   connecting: it has no session of the database, and tries to open one.
 *   standing by: another relay has the lock; it tries to get it.
 *   publishing: it has the lock, reads what is pending, publishes it, and notes it as published.
 *
 * It is connecting again whenever its session breaks. A row is noted as published only once the
 * broker has acknowledged it. What a crash leaves in between is published again under the same id,
 * which stores nothing: the answer is the sequence of the first time.
 *
 * It never reads rows by "id > the last one": a transaction that commits late has lower ids.
 */

/** What became of a row that was published. */
export type Outcome =
  /** It is stored at this sequence of INTAKE, now or from an earlier attempt. */
  | { readonly kind: "stored"; readonly seq: number }
  /** It can never be stored as it is. */
  | { readonly kind: "refused"; readonly why: string }
  /** It may be stored or not; it is to be published again. */
  | { readonly kind: "unknown"; readonly why: string }

export interface RelayOptions {
  readonly open: (onBroken: () => void) => Effect.Effect<Session, DatabaseError, Scope.Scope>
  readonly table: TableName
  /** Publishes one row. Never fails, and ends within some seconds. */
  readonly publish: (row: PendingRow) => Effect.Effect<Outcome>
  /** How long published rows stay, ms. */
  readonly keepMs: number
  /** How often the relay looks for rows without having been notified, ms. */
  readonly pollMs: number
  readonly hears: RelayListener
}

/** Hears what a relay does. */
export interface RelayListener {
  readonly connecting: () => void
  readonly standingBy: () => Effect.Effect<void>
  readonly publishing: () => Effect.Effect<void>
  /** A row's outcome is noted in the database. */
  readonly stored: (row: PendingRow, waitedMs: number) => void
  readonly setAside: (row: PendingRow, why: string) => Effect.Effect<void>
  readonly removed: (rows: number) => void
  /** What keeps rows from being published; undefined once nothing does. */
  readonly problem: (why: string | undefined) => Effect.Effect<void>
  readonly waiting: (waiting: Waiting) => Effect.Effect<void>
}

/** Rows under way, and their bytes. They bound the memory of a relay. */
const mostRows = 1_000
const mostBytes = 16 * 1024 * 1024
/** Tenants that share one batch. */
const mostTenants = 100
/** A row that takes longer does not hold up the next batch, ms. */
const slowMs = 500
/** Pauses while nothing can be published, ms. */
const firstPauseMs = 100
const longestPauseMs = 5_000
/** A row that failed while others were stored waits for so long at first, and at most, ms. */
const firstDeferMs = 1_000
const longestDeferMs = 60_000
/** Pause between tries to get the lock, or a session, ms. */
const retryMs = 1_000
/** Shorter than the pause between reports: a report is never of before the last one. */
const surveyMs = 2_000
const cleanMs = 10_000
/** Pause from one removal to the next while there is more to remove, ms. */
const betweenRemovalsMs = 100

/** Nobody could say how long such a row waits, and whether that is too long. */
const withoutAge: Outcome = {
  kind: "refused",
  why: "its created_at is infinite; `petrel outbox release` publishes it with the time of the release"
}

interface Settled {
  readonly row: PendingRow
  readonly outcome: Outcome
  /** From the row's insertion to the outcome. */
  readonly waitedMs: number
}

/** A row that failed while others were stored. */
interface Deferred {
  readonly times: number
  readonly until: number
}

/** The rows that a publishing relay has under way. */
class Batches {
  readonly #table: OutboxTable
  readonly #options: RelayOptions
  readonly #scope: Scope.Scope
  /** Rows that are being published, by number, with their bytes. */
  readonly #open = new Map<string, number>()
  readonly #settled: Array<Settled> = []
  /** Rows that wait before they are tried again, by number. */
  readonly #deferred = new Map<string, Deferred>()
  readonly #settling: Queue.Queue<void>
  #after = ""
  #failedInRow = 0

  constructor(
    table: OutboxTable,
    options: RelayOptions,
    scope: Scope.Scope,
    settling: Queue.Queue<void>
  ) {
    this.#table = table
    this.#options = options
    this.#scope = scope
    this.#settling = settling
  }

  /** Reads one batch and publishes it. Returns how long to pause, ms; undefined to wait for rows. */
  readonly turn = Effect.gen({ self: this }, function* () {
    const began = this.#after
    const found = yield* this.#take
    for (const row of found) yield* this.#publish(row)
    yield* this.#settle(found.length > 0 ? slowMs : firstPauseMs)
    const noted = this.#settled.length
    const pauseMs = yield* Effect.uninterruptible(this.#note)
    const isIdle = found.length + noted + this.#open.size === 0 && began === ""
    return isIdle ? undefined : pauseMs
  })

  /** Waits for what is under way, for a time, and notes what became of it. */
  readonly finish = Effect.gen({ self: this }, function* () {
    yield* this.#settle(slowMs * 4)
    yield* this.#note
  })

  readonly #take = Effect.gen({ self: this }, function* () {
    const now = timers.monotonicMs()
    const held = [...this.#deferred].flatMap(([id, { until }]) => (until > now ? [id] : []))
    const bytes = [...this.#open.values()].reduce((sum, one) => sum + one, 0)
    const free = { rows: mostRows - this.#open.size, bytes: mostBytes - bytes }
    if (free.rows <= 0 || free.bytes <= 0) return []
    const { next, rows } = yield* this.#table.take({
      ...{ after: this.#after, tenants: mostTenants, ...free },
      except: [...this.#open.keys(), ...held]
    })
    this.#after = next
    return rows
  })

  readonly #publish = Effect.fnUntraced({ self: this }, function* (row: PendingRow) {
    const readAt = timers.monotonicMs()
    this.#open.set(row.id, row.body.byteLength)
    const settled = (outcome: Outcome): void => {
      this.#open.delete(row.id)
      const waitedMs = (row.ageMs ?? 0) + timers.monotonicMs() - readAt
      this.#settled.push({ row, outcome, waitedMs })
      if (this.#open.size === 0) Queue.offerUnsafe(this.#settling, undefined)
    }
    const outcome =
      row.ageMs === undefined ? Effect.succeed(withoutAge) : this.#options.publish(row)
    yield* Effect.forkIn(Effect.map(outcome, settled), this.#scope)
  })

  /** Waits until nothing is under way, or for a time (ms). */
  #settle(ms: number) {
    return Effect.suspend(() =>
      this.#open.size === 0
        ? Effect.void
        : Effect.asVoid(Effect.timeoutOption(Queue.take(this.#settling), ms))
    )
  }

  /** Notes in the database what became of rows. Returns how long to pause, ms. */
  readonly #note = Effect.gen({ self: this }, function* () {
    const settled = this.#settled.splice(0)
    if (settled.length === 0) return 0
    const { hears } = this.#options
    const stored = settled.flatMap(({ outcome, row, waitedMs }) =>
      outcome.kind === "stored" ? [{ row, waitedMs, seq: outcome.seq }] : []
    )
    if (stored.length > 0) yield* this.#table.mark(stored)
    for (const { row, waitedMs } of stored) {
      this.#deferred.delete(row.id)
      hears.stored(row, waitedMs)
    }
    for (const { outcome, row } of settled) {
      if (outcome.kind !== "refused") continue
      yield* this.#table.setAside(row, outcome.why)
      this.#deferred.delete(row.id)
      yield* hears.setAside(row, outcome.why)
    }
    const unknown = settled.flatMap(({ outcome, row }) =>
      outcome.kind === "unknown" ? [{ id: row.id, why: outcome.why }] : []
    )
    const [first] = unknown
    if (first === undefined || stored.length > 0) {
      for (const { id } of unknown) this.#defer(id)
      this.#failedInRow = 0
      yield* hears.problem(undefined)
      return 0
    }
    yield* hears.problem(first.why)
    return Math.min(longestPauseMs, firstPauseMs * 2 ** this.#failedInRow++)
  })

  #defer(id: string): void {
    const times = (this.#deferred.get(id)?.times ?? 0) + 1
    const ms = Math.min(longestDeferMs, firstDeferMs * 2 ** (times - 1))
    this.#deferred.set(id, { times, until: timers.monotonicMs() + ms })
  }
}

/** Counts what waits, and removes what has stayed for long enough, until interrupted. */
const tend = (table: OutboxTable, { hears, keepMs }: RelayOptions) => {
  const survey = Effect.gen(function* () {
    while (true) {
      yield* hears.waiting(yield* table.waiting)
      yield* Effect.sleep(surveyMs)
    }
  })
  const cleaning = Effect.gen(function* () {
    while (true) {
      const { count, isAll } = yield* table.clean(keepMs)
      hears.removed(count)
      yield* Effect.sleep(isAll ? cleanMs : betweenRemovalsMs)
    }
  })
  return Effect.all([survey, cleaning], { concurrency: 2, discard: true })
}

/** Publishes until the session breaks or the relay is stopped. */
const publishing = Effect.fnUntraced(function* (
  table: OutboxTable,
  options: RelayOptions,
  bell: Queue.Queue<void>
) {
  const settling = yield* Queue.sliding<void>(1)
  const batches = new Batches(table, options, yield* Effect.scope, settling)
  const work = Effect.gen(function* () {
    while (true) {
      const pauseMs = yield* batches.turn
      if (pauseMs === undefined) yield* Effect.timeoutOption(Queue.take(bell), options.pollMs)
      else if (pauseMs > 0) yield* Effect.sleep(pauseMs)
    }
  }).pipe(Effect.onInterrupt(() => Effect.ignore(batches.finish)))
  yield* Effect.raceFirst(work, tend(table, options))
})

/** One session: stands by until it has the lock, and publishes until the session breaks. */
const session = Effect.fnUntraced(function* (options: RelayOptions) {
  const { hears } = options
  hears.connecting()
  const bell = yield* Queue.sliding<void>(1)
  const ring = () => {
    Queue.offerUnsafe(bell, undefined)
  }
  const table = new OutboxTable(yield* options.open(ring), options.table)
  yield* table.check
  yield* table.checkPrivileges
  if (!(yield* table.lock)) {
    yield* hears.standingBy()
    while (!(yield* table.lock)) yield* Effect.sleep(retryMs)
  }
  yield* table.listen(ring)
  yield* hears.publishing()
  // What lasts is mostly what is checked at the start, which also says what to do.
  yield* publishing(table, options, bell).pipe(
    Effect.tapError((error) =>
      isLasting(error) ? Effect.andThen(table.check, table.checkPrivileges) : Effect.void
    )
  )
}, Effect.scoped)

/**
 * Relays an outbox until it is interrupted; what is under way is finished first. Waits for the
 * database and comes back. Fails where waiting does not help: the login is refused, or the table is
 * no outbox.
 */
export const runRelay = (options: RelayOptions): Effect.Effect<never, DatabaseError | NoOutbox> =>
  Effect.gen(function* () {
    while (true) {
      yield* session(options).pipe(
        Effect.catchIf(
          (error): error is DatabaseError => error._tag === "DatabaseError" && !isLasting(error),
          ({ message }) => options.hears.problem(message)
        )
      )
      yield* Effect.sleep(retryMs)
    }
  })
