import { type Alert, isMeasured, type StandingAlert } from "../domain/alert.ts"
import type { Fact } from "../domain/fact.ts"
import type { AlertReading, GroupChange } from "../policy/alert-reading.ts"
import { groupChange } from "../policy/alert-reading.ts"
import type { AlertEntry } from "./alert-entries.ts"
import type { AlertRecord } from "./alert-store.ts"
import { aboutOf } from "./alert-store.ts"

/** Readings of one group, of which at most one is raised, with what the fact states besides. */
export interface SubjectReadings {
  readonly readings: ReadonlyArray<AlertReading>
  /** When they were read, ms since the epoch. */
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

/** The group's alert that is raised; the newest if an older version has raised several. */
const raisedOf = (
  { raised }: Pick<AlertRecord, "raised">,
  readings: ReadonlyArray<AlertReading>
): StandingAlert | undefined =>
  raised.findLast((alert) => readings.some(({ name }) => name === alert.name))

/** What readings change, given what is raised; undefined if nothing. */
export const changeOf = (
  record: Pick<AlertRecord, "raised">,
  { readings, watched }: Pick<SubjectReadings, "readings" | "watched">
): GroupChange | undefined => groupChange(raisedOf(record, readings)?.name, readings, watched)

/**
 * The record that readings ask for, with the fact of the change as `unrecorded`; undefined if the
 * readings change nothing, or while the former change is not in the history.
 */
export const changeFor = (
  entry: AlertEntry,
  found: SubjectReadings,
  { nextId, worker }: ChangeMaker
): AlertRecord | undefined => {
  const { at, generation, readings } = found
  const change = changeOf(entry.record, found)
  if (change === undefined || entry.uncertain || entry.record.unrecorded !== undefined)
    return undefined
  const before = raisedOf(entry.record, readings)
  const others = entry.record.raised.filter(
    ({ name }) => name !== before?.name && name !== change.reading.name
  )
  const isOver = change.transition === "clear"
  const alert =
    isOver && before !== undefined
      ? cleared(before, change, found)
      : raised(entry, found, change, before ?? { id: `alert_${nextId()}`, raisedAt: at })
  const { endpoint, tenant } = entry
  const unrecorded: Fact = {
    ...{
      v: 1,
      kind: isOver ? "alert-cleared" : "alert-raised",
      at,
      tenant,
      endpoint,
      alert,
      worker
    },
    reason: isOver ? (found.reason ?? reasonOf(change.reading)) : undefined
  }
  return {
    ...entry.record,
    ...(isOver || generation === undefined ? {} : { generation }),
    raised: isOver ? others : [...others, alert],
    unrecorded
  }
}

/** Least time between two stored values of an alert that stays raised, ms. */
const renewEveryMs = 60_000

/**
 * The record with the present value of the alert that stays raised; undefined if it has not changed,
 * was renewed less than a minute ago, or cannot be written now.
 */
export const renewalFor = (
  entry: AlertEntry,
  { at, readings }: Pick<SubjectReadings, "at" | "readings">
): AlertRecord | undefined => {
  const standing = raisedOf(entry.record, readings)
  if (standing?.value === undefined || !isMeasured(standing.name)) return undefined
  const found = readings.find(({ name }) => name === standing.name)
  if (found?.value === undefined) return undefined
  if (entry.uncertain || entry.record.unrecorded !== undefined) return undefined
  if (at - (entry.renewedAt ?? standing.raisedAt) < renewEveryMs) return undefined
  const value = rounded(found.value)
  if (value === (standing.currentValue ?? standing.value)) return undefined
  const renewed = { ...standing, currentValue: value }
  return {
    ...entry.record,
    raised: entry.record.raised.map((one) => (one === standing ? renewed : one))
  }
}

/** @param before the alert that goes on under another name, or what identifies a new one. */
const raised = (
  entry: AlertEntry,
  { more, window }: SubjectReadings,
  { also, reading }: GroupChange,
  before: Pick<Alert, "id" | "raisedAt"> & { readonly name?: Alert["name"] }
): Alert => ({
  id: before.id,
  name: reading.name,
  about: aboutOf(entry),
  level: reading.level,
  ...measured(reading),
  windowMs: window,
  raisedAt: before.raisedAt,
  ...(before.name === undefined ? {} : { replaces: before.name }),
  ...(also.length === 0 ? {} : { also }),
  ...more
})

const cleared = (
  before: StandingAlert,
  { reading }: GroupChange,
  { more }: SubjectReadings
): Alert => {
  const {
    also: _also,
    currentValue: _current,
    replaces: _replaces,
    value: _value,
    ...kept
  } = before
  return { ...kept, ...measured(reading), ...more }
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
  ...(value === undefined ? {} : { value: rounded(value) })
})

const rounded = (value: number): number => Math.round(value * 100) / 100

const reasonOf = ({ state }: AlertReading): string => {
  if (state === "off") return "nobody wants to know any more"
  return state === "good" ? "it is well again" : "nothing of that kind for a whole window"
}
