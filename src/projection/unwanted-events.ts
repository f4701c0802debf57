import type { DatabaseSync, StatementSync } from "node:sqlite"
import type { Fact } from "../domain/fact.ts"
import { directChannel } from "../domain/origin.ts"
import type { LoggedEvent } from "./delivery-log.ts"
import type { Names, WritableNames } from "./names-table.ts"
import { channelIn, eventLabel, positionOf } from "./tracked-round.ts"

/** An event that no endpoint wants. It has no delivery, so that nothing else tells of it. */
export interface UnwantedEvent extends LoggedEvent {
  /** Of the fact that says so. */
  readonly position: number
  readonly channel: string
}

export const unwantedTable = `
  CREATE TABLE IF NOT EXISTS unwanted (
    position INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, event TEXT NOT NULL,
    event_seq INTEGER NOT NULL, event_at INTEGER NOT NULL, type INTEGER,
    channel INTEGER);
  CREATE INDEX IF NOT EXISTS unwanted_event ON unwanted (event);
  CREATE INDEX IF NOT EXISTS unwanted_event_seq ON unwanted (event_seq, event_at);
  CREATE INDEX IF NOT EXISTS unwanted_tenant_event ON unwanted (tenant, event_seq, event_at);`

/** Returns the event of a fact whose plan is empty; undefined for any other fact. */
export const unwantedIn = (fact: Fact, seq: number): UnwantedEvent | undefined => {
  const { eventAt, eventSeq, plan, reason, tenant, type = null } = fact
  if (plan === undefined || eventAt === undefined || eventSeq === undefined) return undefined
  // With a reason, the event is one that is stored under another sequence, too.
  if (plan.endpoints.length > 0 || plan.skipped.length > 0 || plan.part > 0 || reason !== undefined)
    return undefined
  return {
    ...{ position: positionOf(seq, 0), tenant, event: eventLabel(fact), eventSeq, eventAt, type },
    channel: channelIn(fact) ?? directChannel
  }
}

export const prepareUnwanted = (
  db: DatabaseSync,
  names: WritableNames
): ((event: UnwantedEvent) => void) => {
  const insert = db.prepare("INSERT OR REPLACE INTO unwanted VALUES (?, ?, ?, ?, ?, ?, ?)")
  return ({ channel, event, eventAt, eventSeq, position, tenant, type }) => {
    const named = type === null ? null : names.storedOf(type)
    insert.run(
      position,
      names.storedOf(tenant),
      event,
      eventSeq,
      eventAt,
      named,
      names.storedOf(channel)
    )
  }
}

/** Reads the events of a query that ends with a limit. */
export const readUnwanted = (
  query: StatementSync,
  names: Names,
  ...values: ReadonlyArray<string | number>
): ReadonlyArray<LoggedEvent> =>
  query.all(...values).map((row) => ({
    tenant: names.textOf(row.tenant ?? null),
    event: String(row.event),
    eventSeq: Number(row.event_seq),
    eventAt: Number(row.event_at),
    type: row.type == null ? null : names.textOf(row.type)
  }))
