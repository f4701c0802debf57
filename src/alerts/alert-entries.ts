import { Effect } from "effect"
import { Broker } from "../broker/connection.ts"
import { eraseValue, writeValue } from "../broker/values.ts"
import { readEntry } from "../cluster/kv-entry.ts"
import type { AlertRecord, AlertSubject } from "./alert-store.ts"
import { alertKey, listAlerts, nothingRaised, parseRecord } from "./alert-store.ts"

/** What is raised about something, in the memory of the one who judges it. */
export interface AlertEntry extends AlertSubject {
  record: AlertRecord
  /** What the next write has to expect; 0 where nothing was ever stored. */
  revision: number
  /** A write whose end nobody knows may have been stored. */
  uncertain: boolean
}

/**
 * What the bucket holds of the alerts that somebody judges, in memory.
 *
 * @param keys of which ones, as a subject, and of which subjects among them, a predicate.
 */
export const makeAlertEntries = Effect.fnUntraced(function* (
  keys: string,
  isMine: (subject: AlertSubject) => boolean
) {
  const { names } = yield* Broker
  const bucket = names.buckets.alerts
  const entries = new Map<string, AlertEntry>()

  const entryOf = (subject: AlertSubject): AlertEntry => {
    const key = alertKey(subject)
    const known = entries.get(key)
    if (known !== undefined) return known
    const { endpoint, tenant } = subject
    return { tenant, endpoint, record: nothingRaised, revision: 0, uncertain: false }
  }

  const keep = (entry: AlertEntry) => {
    const { raised, untold } = entry.record
    const key = alertKey(entry)
    if (raised.length > 0 || untold !== undefined || entry.uncertain) entries.set(key, entry)
    else entries.delete(key)
  }

  /** What somebody else has written stands. */
  const readAgain = Effect.fnUntraced(function* (entry: AlertEntry) {
    const { revision, text } = yield* readEntry(bucket, alertKey(entry))
    entry.record = (text === undefined ? undefined : parseRecord(text)) ?? nothingRaised
    entry.revision = revision
    entry.uncertain = false
    keep(entry)
  })

  /** False where it is not known to be stored: then it is judged anew, from what is stored. */
  const write = Effect.fnUntraced(function* (entry: AlertEntry, record: AlertRecord) {
    const key = alertKey(entry)
    const isEmpty = record.raised.length === 0 && record.untold === undefined
    const stored = yield* Effect.result(
      isEmpty
        ? eraseValue(bucket, key, entry.revision)
        : writeValue(bucket, key, JSON.stringify(record), { expected: entry.revision })
    )
    if (stored._tag === "Success") {
      entry.record = record
      // A mark that something was erased ends by itself.
      entry.revision = stored.success.seq
      keep(entry)
      return true
    }
    entry.uncertain = true
    keep(entry)
    yield* Effect.ignore(readAgain(entry))
    return false
  })

  const listMine = Effect.map(listAlerts(keys), (found) => found.filter(isMine))

  return {
    /** A new one where nothing is raised: it is kept once something is. */
    of: entryOf,
    all: (): ReadonlyArray<AlertEntry> => [...entries.values()],
    /** Takes in what is raised already. */
    load: Effect.map(listMine, (found) => {
      for (const { endpoint, record, revision, tenant } of found)
        keep({ tenant, endpoint, record, revision, uncertain: false })
    }),
    /**
     * Takes in what is not as it is remembered: a write of a former judge, made before it knew that
     * it is none any more, may come after everything was loaded.
     */
    refresh: Effect.gen(function* () {
      const found = new Map((yield* listMine).map((stored) => [alertKey(stored), stored]))
      const subjects = new Map<string, AlertSubject>([...entries, ...found])
      // A copy of the bucket may be behind: what differs is read from the leader.
      for (const [key, subject] of subjects)
        if (entries.get(key)?.revision !== found.get(key)?.revision)
          yield* readAgain(entryOf(subject))
    }),
    readAgain,
    write
  }
})
