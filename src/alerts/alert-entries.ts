import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, readEntry, writeValue } from "../broker/values.ts"
import type { AlertRecord, AlertSubject } from "./alert-store.ts"
import { alertKey, listAlerts, nothingRaised, parseRecord } from "./alert-store.ts"

/** The alerts raised about one subject, in the memory of the worker that judges it. */
export interface AlertEntry extends AlertSubject {
  record: AlertRecord
  /** Revision that the next write expects; 0 if nothing was ever stored. */
  revision: number
  /** True if a write with an unknown result may have been stored. */
  uncertain: boolean
  /** When a present value was last stored, ms since the epoch. */
  renewedAt?: number
}

/**
 * A copy in memory of the bucket's alerts that this worker judges.
 *
 * @param keys the keys as a subject filter, and a predicate on the subjects among them.
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
    const { raised, unrecorded } = entry.record
    const key = alertKey(entry)
    if (raised.length > 0 || unrecorded !== undefined || entry.uncertain) entries.set(key, entry)
    else entries.delete(key)
  }

  /** Takes over what another worker has written. */
  const readAgain = Effect.fnUntraced(function* (entry: AlertEntry) {
    const { revision, text } = yield* readEntry(bucket, alertKey(entry))
    entry.record = (text === undefined ? undefined : parseRecord(text)) ?? nothingRaised
    entry.revision = revision
    entry.uncertain = false
    keep(entry)
  })

  /** Returns false if the write may have failed. The caller judges again from the stored record. */
  const write = Effect.fnUntraced(function* (entry: AlertEntry, record: AlertRecord) {
    const key = alertKey(entry)
    const isEmpty = record.raised.length === 0 && record.unrecorded === undefined
    const stored = yield* Effect.result(
      isEmpty
        ? eraseValue(bucket, key, entry.revision)
        : writeValue(bucket, key, JSON.stringify(record), { expected: entry.revision })
    )
    if (stored._tag === "Success") {
      entry.record = record
      // The marker of a deleted key expires.
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
    /** Returns a new entry if nothing is raised; it is kept once something is. */
    of: entryOf,
    all: (): ReadonlyArray<AlertEntry> => [...entries.values()],
    /** Loads the alerts that are raised already. */
    load: Effect.map(listMine, (found) => {
      for (const { endpoint, record, revision, tenant } of found)
        keep({ tenant, endpoint, record, revision, uncertain: false })
    }),
    /**
     * Loads records that differ from memory: a former judge that has not noticed its loss of
     * ownership may write after `load`.
     */
    refresh: Effect.gen(function* () {
      const found = new Map((yield* listMine).map((stored) => [alertKey(stored), stored]))
      const subjects = new Map<string, AlertSubject>([...entries, ...found])
      // A replica may lag, so differing records are read from the leader.
      for (const [key, subject] of subjects)
        if (entries.get(key)?.revision !== found.get(key)?.revision)
          yield* readAgain(entryOf(subject))
    }),
    readAgain,
    write
  }
})
