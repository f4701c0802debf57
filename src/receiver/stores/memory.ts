import { type Entry, type EntryState, entryStates, type NewEntry, sha256 } from "../entry.ts"
import { unlessAborted, wallMs } from "../machine.ts"
import type { Percentiles, Queue, Store, Stored, StoredCounts } from "../store.ts"

interface Row extends Entry {
  readonly hash: string
}

const ended: ReadonlySet<EntryState> = new Set(["done", "stale", "discarded"])

const percentiles = (durations: ReadonlyArray<number>): Percentiles | undefined => {
  const sorted = [...durations].sort((a, b) => a - b)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return sorted.length === 0 ? undefined : { p50: at(0.5), p95: at(0.95) }
}

const nameOf = (source: string, key: string): string => `${source}\n${key}`

/**
 * Keeps the inbox in the memory of the process, for tests: what is stored is lost with the process, and work that
 * fails half-way is not rolled back.
 */
export const memoryStore = (): Store<undefined> => {
  const rows = new Map<string, Row>()
  const byName = new Map<string, string>()
  const versions = new Map<string, number>()
  /** Events that `once` works on, and how that ends. */
  const working = new Map<string, Promise<void>>()
  let last = 0

  const set = (row: Row, changes: Partial<Row>): Row => {
    const changed = { ...row, ...changes }
    rows.set(row.id, changed)
    return changed
  }

  const find = ({ key, source }: { readonly key: string; readonly source: string }) =>
    rows.get(byName.get(nameOf(source, key)) ?? "")

  const insert = (entry: NewEntry, state: EntryState, error?: string): Stored => {
    const hash = sha256(entry.body)
    const found = find(entry)
    if (found !== undefined) {
      const { receipts } = set(found, {
        receipts: found.receipts + 1,
        conflicts: found.conflicts + (found.hash === hash ? 0 : 1)
      })
      return { isNew: false, receipts }
    }
    const now = wallMs()
    const id = `${++last}`
    byName.set(nameOf(entry.source, entry.key), id)
    rows.set(id, {
      ...entry,
      ...{ id, state, hash, error, attempts: 0, receipts: 1, conflicts: 0 },
      ...{ receivedAt: now, nextAt: now, startedAt: undefined },
      finishedAt: ended.has(state) ? now : undefined,
      body: ended.has(state) ? undefined : entry.body
    })
    return { isNew: true, receipts: 1 }
  }

  const isNewest = ({ source, subject, version }: Omit<NewEntry, "body">): boolean =>
    subject === undefined ||
    version === undefined ||
    version > (versions.get(nameOf(source, subject)) ?? Number.NEGATIVE_INFINITY)

  const remember = ({ source, subject, version }: Omit<NewEntry, "body">) => {
    if (subject !== undefined && version !== undefined)
      versions.set(nameOf(source, subject), version)
  }

  /** The row, if it is still what was claimed. */
  const own = ({ attempts, id }: Entry): Row | undefined => {
    const row = rows.get(id)
    return row?.state === "received" && row.attempts === attempts ? row : undefined
  }

  const finish = (row: Row, state: EntryState) =>
    set(row, { state, body: undefined, error: undefined, finishedAt: wallMs() })

  const isOldestOfSubject = (row: Row): boolean =>
    row.subject === undefined ||
    ![...rows.values()].some(
      (other) =>
        other.state === "received" &&
        other.source === row.source &&
        other.subject === row.subject &&
        Number(other.id) < Number(row.id)
    )

  const decide = (id: string, state: EntryState, changes: Partial<Row>): boolean => {
    const row = rows.get(id)
    if (row?.state !== "dead" && row?.state !== "quarantined") return false
    set(row, { state, ...changes })
    return true
  }

  const queue: Queue<undefined> = {
    put: async (entries) => entries.map((entry) => insert(entry, "received")),
    keep: async (entry, state, error) => insert(entry, state, error),

    claim: async (sources, limit, leaseMs) => {
      const now = wallMs()
      return [...rows.values()]
        .filter(
          (row) => row.state === "received" && row.nextAt <= now && sources.includes(row.source)
        )
        .filter(isOldestOfSubject)
        .slice(0, limit)
        .map((row) =>
          set(row, {
            attempts: row.attempts + 1,
            nextAt: now + leaseMs,
            startedAt: row.startedAt ?? now
          })
        )
    },

    work: async (entry, run) => {
      const row = own(entry)
      if (row === undefined) return "lost"
      if (!isNewest(row)) {
        finish(row, "stale")
        return "stale"
      }
      await run(undefined)
      remember(row)
      const after = own(entry)
      if (after === undefined) return "lost"
      finish(after, "done")
      return "done"
    },

    fail: async (entry, failure) => {
      const row = own(entry)
      if (row === undefined) return false
      const { error } = failure
      if (failure.kind === "retry") {
        const attempts = failure.isFree === true ? row.attempts - 1 : row.attempts
        set(row, { error, attempts, nextAt: wallMs() + failure.delayMs })
      } else set(row, { error, state: failure.kind, finishedAt: wallMs() })
      return true
    },

    replace: async (entry, entries) => {
      const row = own(entry)
      if (row === undefined) return "lost"
      for (const one of entries) insert(one, "received")
      finish(row, "done")
      return "done"
    },

    list: async ({ before, limit = 50, source, state }) =>
      [...rows.values()]
        .filter(
          (row) =>
            (state === undefined || row.state === state) &&
            (source === undefined || row.source === source) &&
            (before === undefined || Number(row.id) < Number(before))
        )
        .reverse()
        .slice(0, limit)
        .map((row) => ({ ...row, body: undefined })),

    show: async (id) => rows.get(id),

    retry: async (id) =>
      decide(id, "received", {
        ...{ attempts: 0, nextAt: wallMs(), startedAt: undefined, finishedAt: undefined }
      }),

    resolve: async (id, by) =>
      decide(id, "discarded", {
        ...{ body: undefined, finishedAt: wallMs(), error: `resolved by ${by}` }
      }),

    counts: async (source, sinceMs): Promise<StoredCounts> => {
      const now = wallMs()
      const all = [...rows.values()].filter((row) => source === undefined || row.source === source)
      const recent = all.filter(({ receivedAt }) => receivedAt >= now - sinceMs)
      const attempts: Record<number, number> = {}
      for (const row of recent)
        if (row.state === "done" || row.state === "dead") {
          const taken = Math.max(1, row.attempts)
          attempts[taken] = (attempts[taken] ?? 0) + 1
        }
      return {
        byState: Object.fromEntries(
          entryStates.map((state) => [state, recent.filter((row) => row.state === state).length])
        ) as StoredCounts["byState"],
        repeats: recent.reduce((sum, { receipts }) => sum + receipts - 1, 0),
        conflicts: recent.reduce((sum, row) => sum + row.conflicts, 0),
        attempts,
        timeToDone: percentiles(
          recent.flatMap(({ finishedAt, receivedAt, state }) =>
            state === "done" && finishedAt !== undefined ? [finishedAt - receivedAt] : []
          )
        ),
        queueDelay: percentiles(
          recent.flatMap(({ receivedAt, startedAt }) =>
            startedAt === undefined ? [] : [startedAt - receivedAt]
          )
        )
      }
    },

    waiting: async () => {
      const now = wallMs()
      const all = [...rows.values()]
      return [...new Set(all.map(({ source }) => source))].map((source) => {
        const of = (state: EntryState) =>
          all.filter((row) => row.source === source && row.state === state)
        const received = of("received")
        return {
          source,
          received: received.length,
          dead: of("dead").length,
          quarantined: of("quarantined").length,
          oldestWaitsMs: Math.max(0, ...received.map(({ receivedAt }) => now - receivedAt))
        }
      })
    }
  }

  return {
    name: "memory",
    guarantee: "at-least-once",
    queue,

    once: async (entry, run, { signal }) => {
      const name = nameOf(entry.source, entry.key)
      for (;;) {
        const other = working.get(name)
        if (other === undefined) break
        await other
      }
      if (find(entry) !== undefined)
        return { outcome: "duplicate", receipts: insert(entry, "done").receipts }
      if (!isNewest(entry)) {
        insert(entry, "stale")
        return { outcome: "stale" }
      }
      const work = unlessAborted(run(undefined), signal)
      working.set(
        name,
        work.then(
          () => undefined,
          () => undefined
        )
      )
      try {
        await work
      } finally {
        working.delete(name)
      }
      remember(entry)
      insert(entry, "done")
      return { outcome: "done" }
    },

    known: async (source, keys) =>
      new Set(keys.filter((key) => find({ source, key }) !== undefined)),

    prune: async (limit) => {
      const now = wallMs()
      const old = [...rows.values()]
        .filter((row) => ended.has(row.state) && row.receivedAt + row.keepMs <= now)
        .slice(0, limit)
      for (const row of old) {
        rows.delete(row.id)
        byName.delete(nameOf(row.source, row.key))
      }
      return old.length
    },

    migrate: async () => undefined
  }
}
