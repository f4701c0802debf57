import { type EntryState, type NewEntry, sha256 } from "../entry.ts"
import { monotonicMs, pause, random } from "../machine.ts"
import {
  type OnceOutcome,
  type Queue,
  type Store,
  type Stored,
  StoreUnavailable,
  type WorkOutcome
} from "../store.ts"
import { checkVersion, migrate, missingTables } from "./migrations.ts"
import {
  endedBefore,
  placesFor,
  type SqlDatabase,
  type SqlSession,
  type SqlTables,
  type SqlTrouble
} from "./sql.ts"
import { claimEntries, wakeNext } from "./sql-claim.ts"
import { sqlCounts, sqlWaiting } from "./sql-counts.ts"
import { entryColumns, entryOf, newColumns, newExpressions, newValues } from "./sql-rows.ts"

/** How long `once` waits for another request that works on the same event. */
const lockMs = 2_000

/** How long work waits for its row, which a repeat has while it counts its receipt. */
const heldMs = 2_000

/** Greatest pause between two looks at a row that another transaction has. */
const heldPauseMs = 100

/** How often a transaction is run again at once after a deadlock or a conflict. */
const conflictTries = 3

/** What is sent again after this time finds the lock free, or the database back. */
const retryAfterMs = 5_000

const savepoint = "petrel_inbox"

/** Greatest number of keys in one statement. */
const keysInOne = 500

/** Makes a store of a database. */
export const sqlStore = <Tx>(db: SqlDatabase<Tx>, tables: SqlTables): Store<Tx> => {
  const { dialect } = db
  const { inbox, versions } = tables
  const columns = entryColumns.join(", ")

  /** What work has thrown: it may be of another database or service. */
  const ofWork = new WeakSet<Error>()
  const worked = async (
    run: (tx: Tx) => Promise<void>,
    tx: Tx,
    session: SqlSession
  ): Promise<void> => {
    await session.run(`savepoint ${savepoint}`)
    try {
      await run(tx)
    } catch (error) {
      if (error instanceof Error) ofWork.add(error)
      throw error
    }
    // It is gone where the work has ended the transaction, as a deadlock does, or where a statement has failed.
    await session.run(`release savepoint ${savepoint}`).catch((cause) => {
      throw dialect.troubleOf(cause) === "unavailable" ? cause : new Error(endedBefore, { cause })
    })
  }

  /** Gives errors of the database their names for the receiver. Others pass. */
  const explained = (error: unknown): unknown => {
    const trouble = dialect.troubleOf(error)
    if (error instanceof StoreUnavailable || trouble === undefined) return error
    if (error instanceof Error && ofWork.has(error)) return error
    const text =
      trouble === "not-migrated"
        ? missingTables(inbox)
        : `${dialect.name}: ${error instanceof Error ? error.message : error}`
    return new StoreUnavailable(text, { cause: error })
  }

  let isChecked = false

  /** Runs a transaction, again where it met a deadlock or a conflict with another one. Looks at the tables' version first. */
  const again = async <A>(
    run: () => Promise<A>,
    passing: ReadonlyArray<SqlTrouble | undefined> = ["conflict", "locked"],
    isMigration = false
  ): Promise<A> => {
    for (let tries = 1; ; tries++)
      try {
        if (!isChecked && !isMigration) await checkVersion(db, tables)
        isChecked ||= !isMigration
        return await run()
      } catch (error) {
        if (!passing.includes(dialect.troubleOf(error)) || tries > conflictTries)
          throw explained(error)
        await pause(20 * tries * (0.5 + random()))
      }
  }

  const insert = async (
    session: SqlSession,
    entry: NewEntry,
    state: EntryState,
    error?: string
  ): Promise<Stored> => {
    const receipts = await dialect.insert(session, {
      table: inbox,
      columns: [
        ...newColumns,
        ...["received_at", "next_at", ...(state === "done" ? ["finished_at"] : [])]
      ],
      expressions: [
        ...newExpressions(dialect.nowMs),
        ...[dialect.nowMs, dialect.nowMs, ...(state === "done" ? [dialect.clockMs] : [])]
      ],
      values: newValues(entry, state, error),
      ...{ source: entry.source, key: entry.key, hash: sha256(entry.body) }
    })
    return { isNew: receipts === 1, receipts }
  }

  /** Records the version of a subject, within a transaction. False if a newer one was worked on. */
  const isNewest = async (
    session: SqlSession,
    { keepMs, source, subject, version }: Omit<NewEntry, "body">
  ): Promise<boolean> => {
    if (subject === undefined || version === undefined) return true
    // Any version is newer than this one. The row is there and locked, then.
    await session.run(
      dialect.insertIgnore(
        versions,
        "source, subject, version, expires_at",
        `?, ?, -9007199254740991, ${dialect.nowMs}`
      ),
      [source, subject]
    )
    const changed = await session.run(
      `update ${versions} set version = ?, expires_at = ${dialect.nowMs} + ?
       where source = ? and subject = ? and version < ?`,
      [version, keepMs, source, subject, version]
    )
    return changed === 1
  }

  /** Inserts an entry that needs no other statement. */
  const insertAlone = (entry: NewEntry, state: EntryState, error?: string): Promise<Stored> =>
    dialect.insertsInTransaction
      ? db.transaction((_, session) => insert(session, entry, state, error))
      : insert(db, entry, state, error)

  const once: Store<Tx>["once"] = async (entry, run, { signal }) => {
    const work = async (tx: Tx, session: SqlSession): Promise<OnceOutcome> => {
      const { isNew, receipts } = await insert(session, entry, "done")
      if (!isNew) return { outcome: "duplicate", receipts }
      if (await isNewest(session, entry)) {
        await worked(run, tx, session)
        return { outcome: "done" }
      }
      await session.run(`update ${inbox} set state = 'stale' where source = ? and event_key = ?`, [
        entry.source,
        entry.key
      ])
      return { outcome: "stale" }
    }
    try {
      return await again(() => db.transaction(work, { lockMs, signal }), ["conflict"])
    } catch (error) {
      const cause = error instanceof StoreUnavailable ? error.cause : error
      if (dialect.troubleOf(cause) === "locked") return { outcome: "busy", retryAfterMs }
      throw error
    }
  }

  /**
   * Whether an entry is still this process's, whose row is locked then. `held`: it is, but another transaction has the
   * row at this moment, such as that of a repeat, which counts its receipt.
   */
  const ownership = async (
    session: SqlSession,
    id: string,
    attempts: number
  ): Promise<"own" | "held" | "lost"> => {
    const own = `select id from ${inbox} where id = ? and state = 'received' and attempts = ?`
    const locked = await session.rows(`${own} ${dialect.forUpdate}`, [id, attempts])
    if (locked.length === 1) return "own"
    return (await session.rows(own, [id, attempts])).length === 1 ? "held" : "lost"
  }

  /**
   * Runs a transaction that needs an entry's row until no other has it, for a short time. It ends between two tries
   * instead of waiting for the lock: so it keeps no connection of the pool, and can be part of no deadlock.
   */
  const unlessHeld = async (
    run: () => Promise<WorkOutcome | "held">,
    signal?: AbortSignal
  ): Promise<WorkOutcome> => {
    const deadline = monotonicMs() + heldMs
    for (let pauseMs = 2; ; pauseMs = Math.min(2 * pauseMs, heldPauseMs)) {
      const outcome = await again(run)
      if (outcome !== "held") return outcome
      if (monotonicMs() > deadline || signal?.aborted === true) return "lost"
      await pause(pauseMs * (0.5 + random()), signal)
    }
  }

  const finish = (session: SqlSession, id: string, state: EntryState) =>
    session.run(
      `update ${inbox} set state = ?, body = null, error = null, finished_at = ${dialect.clockMs} where id = ?`,
      [state, id]
    )

  const queue: Queue<Tx> = {
    ...(dialect.atOnce !== undefined && { atOnce: dialect.atOnce }),

    put: (entries) =>
      again(async () => {
        const [only] = entries
        if (only !== undefined && entries.length === 1) return [await insertAlone(only, "received")]
        return db.transaction(async (_, session) => {
          const stored: Array<Stored> = []
          for (const entry of entries) stored.push(await insert(session, entry, "received"))
          return stored
        })
      }),

    keep: (entry, state, error) => again(() => insertAlone(entry, state, error)),

    claim: (sources, limit, leaseMs) =>
      again(() => claimEntries(db, inbox, { sources, limit, leaseMs })),

    work: (entry, run, signal) =>
      unlessHeld(
        () =>
          db.transaction<WorkOutcome | "held">(
            async (tx, session) => {
              const owned = await ownership(session, entry.id, entry.attempts)
              if (owned !== "own") return owned
              const isFresh = await isNewest(session, entry)
              if (isFresh) await worked(run, tx, session)
              await finish(session, entry.id, isFresh ? "done" : "stale")
              await wakeNext(db, session, inbox, entry)
              return isFresh ? "done" : "stale"
            },
            { signal }
          ),
        signal
      ),

    fail: async (entry, failure) => {
      const own = "where id = ? and state = 'received' and attempts = ?"
      const { error, kind } = failure
      if (kind === "retry") {
        const attempts = failure.isFree === true ? "attempts - 1" : "attempts"
        const changing = `update ${inbox} set next_at = ${dialect.nowMs} + ?, error = ?, attempts = ${attempts} ${own}`
        const values = [failure.delayMs, error, entry.id, entry.attempts]
        return (await again(() => db.run(changing, values))) === 1
      }
      const ending = `update ${inbox} set state = ?, finished_at = ${dialect.nowMs}, error = ? ${own}`
      return again(() =>
        db.transaction(async (_, session) => {
          const ended = await session.run(ending, [kind, error, entry.id, entry.attempts])
          if (ended === 1) await wakeNext(db, session, inbox, entry)
          return ended === 1
        })
      )
    },

    replace: (entry, entries) =>
      unlessHeld(() =>
        db.transaction<WorkOutcome | "held">(async (_, session) => {
          const owned = await ownership(session, entry.id, entry.attempts)
          if (owned !== "own") return owned
          for (const one of entries) await insert(session, one, "received")
          await finish(session, entry.id, "done")
          return "done"
        })
      ),

    list: ({ before, limit = 50, source, state }) =>
      again(async () => {
        const conditions = [
          ...(state === undefined ? [] : [["state = ?", state] as const]),
          ...(source === undefined ? [] : [["source = ?", source] as const]),
          ...(before === undefined ? [] : [["id < ?", before] as const])
        ]
        const where = conditions.map(([text]) => text).join(" and ")
        const rows = await db.rows(
          `select ${columns} from ${inbox} ${where === "" ? "" : `where ${where}`} order by id desc limit ${Math.trunc(limit)}`,
          conditions.map(([, value]) => value)
        )
        return rows.map(entryOf)
      }),

    show: (id) =>
      again(async () => {
        if (!/^\d{1,18}$/.test(id)) return undefined
        const [row] = await db.rows(`select ${columns}, body from ${inbox} where id = ?`, [id])
        return row === undefined ? undefined : entryOf(row)
      }),

    retry: (id) =>
      again(async () => {
        if (!/^\d{1,18}$/.test(id)) return false
        const changed = await db.run(
          `update ${inbox} set state = 'received', attempts = 0, next_at = ${dialect.nowMs},
             started_at = null, finished_at = null
           where id = ? and state in ('dead', 'quarantined')`,
          [id]
        )
        return changed === 1
      }),

    resolve: (id, by) =>
      again(async () => {
        if (!/^\d{1,18}$/.test(id)) return false
        const changed = await db.run(
          `update ${inbox} set state = 'discarded', body = null, finished_at = ${dialect.nowMs},
             error = ? where id = ? and state in ('dead', 'quarantined')`,
          [`resolved by ${by}`, id]
        )
        return changed === 1
      }),

    counts: (source, sinceMs) => again(() => sqlCounts(db, inbox, source, sinceMs)),

    waiting: () => again(() => sqlWaiting(db, inbox))
  }

  return {
    name: dialect.name,
    guarantee: "exactly-once",
    once,
    queue,

    known: (source, keys) =>
      again(async () => {
        const known = new Set<string>()
        for (let at = 0; at < keys.length; at += keysInOne) {
          const some = keys.slice(at, at + keysInOne)
          const rows = await db.rows(
            `select event_key from ${inbox} where source = ? and event_key in (${placesFor(some.length)})`,
            [source, ...some]
          )
          for (const row of rows) known.add(String(row.event_key))
        }
        return known
      }),

    prune: (limit) =>
      again(async () => {
        const pruned = await db.run(
          dialect.deleteSome(
            inbox,
            `state in ('done', 'stale', 'discarded') and expires_at <= ${dialect.nowMs}`,
            limit
          )
        )
        await db.run(dialect.deleteSome(versions, `expires_at <= ${dialect.nowMs}`, limit))
        return pruned
      }),

    migrate: () => again(() => migrate(db, tables), ["conflict", "locked"], true)
  }
}
