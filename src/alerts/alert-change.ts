import type { Alert } from "../domain/alert.ts"
import type { Fact } from "../domain/fact.ts"
import type { AlertReading } from "../policy/alert-reading.ts"
import { transitionOf } from "../policy/alert-reading.ts"
import type { AlertEntry } from "./alert-entries.ts"
import type { AlertRecord } from "./alert-store.ts"
import { aboutOf } from "./alert-store.ts"

/** A reading of one alert, with what its fact states besides. */
export interface SubjectReading {
  readonly reading: AlertReading
  /** When it was read, ms since the epoch. */
  readonly at: number
  /** Whether outcomes were counted for a whole window. */
  readonly watched: boolean
  /** The window, ms. */
  readonly window: number
  /** Generation of the endpoint. */
  readonly generation?: string
  /** Why the alert is cleared, where the reading's state does not say it. */
  readonly reason?: string
  readonly more: Pick<
    Alert,
    "contact" | "failuresInRow" | "lastDeadLetter" | "lastError" | "lastStatus"
  >
}

/** Who decides about a change, and the id that it gets if it raises an alert. */
export interface ChangeMaker {
  readonly worker: string
  readonly nextId: () => string
}

/**
 * The record that a reading asks for, with the fact of the change as `unrecorded`; undefined if the
 * reading changes nothing, or while the former change is not in the history.
 */
export const changeFor = (
  entry: AlertEntry,
  found: SubjectReading,
  { nextId, worker }: ChangeMaker
): AlertRecord | undefined => {
  const { at, reading, watched } = found
  const before = entry.record.raised.find(({ name }) => name === reading.name)
  const transition = transitionOf(before !== undefined, reading, watched)
  if (transition === undefined || entry.uncertain || entry.record.unrecorded !== undefined)
    return undefined
  const { alert, kind, record } =
    before === undefined ? raise(entry, found, `alert_${nextId()}`) : clear(entry, before, found)
  const reason = kind === "alert-cleared" ? (found.reason ?? reasonOf(reading)) : undefined
  const { endpoint, tenant } = entry
  const unrecorded: Fact = { v: 1, kind, at, tenant, endpoint, alert, worker, reason }
  return { ...record, unrecorded }
}

const raise = (entry: AlertEntry, found: SubjectReading, id: string) => {
  const { at, generation, more, reading, window } = found
  const alert: Alert = {
    id,
    name: reading.name,
    about: aboutOf(entry),
    level: reading.level,
    ...measured(reading),
    windowMs: window,
    raisedAt: at,
    ...more
  }
  return {
    kind: "alert-raised",
    alert,
    record: {
      ...entry.record,
      ...(generation === undefined ? {} : { generation }),
      raised: [...entry.record.raised, alert]
    }
  } as const
}

const clear = (entry: AlertEntry, before: Alert, { more, reading }: SubjectReading) => {
  const { value: _, ...kept } = before
  return {
    kind: "alert-cleared",
    alert: { ...kept, ...measured(reading), ...more },
    record: {
      ...entry.record,
      raised: entry.record.raised.filter(({ name }) => name !== reading.name)
    }
  } as const
}

const measured = ({
  status,
  threshold,
  unit,
  value
}: AlertReading): Pick<Alert, "status" | "threshold" | "unit" | "value"> => ({
  threshold,
  unit,
  ...(status === undefined ? {} : { status }),
  ...(value === undefined ? {} : { value: Math.round(value * 100) / 100 })
})

const reasonOf = ({ state }: AlertReading): string => {
  if (state === "off") return "nobody wants to know any more"
  return state === "good" ? "it is well again" : "nothing of that kind for a whole window"
}
