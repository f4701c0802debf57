import { assert, describe, it } from "@effect/vitest"
import { changeFor, renewalFor } from "../../src/alerts/alert-change.ts"
import type { AlertEntry } from "../../src/alerts/alert-entries.ts"
import { nothingRaised } from "../../src/alerts/alert-store.ts"
import type { AlertReading } from "../../src/policy/alert-reading.ts"

const start = 1_772_620_200_000
const minute = 60_000

const reading = (value: number, state: AlertReading["state"]): AlertReading => ({
  ...{ name: "success-low", level: "warn", unit: "percent", threshold: 99 },
  ...{ value, state, quiet: state === "good" }
})

const entryOf = (more: Partial<AlertEntry> = {}): AlertEntry => ({
  ...{ tenant: "acme", endpoint: "hook", record: nothingRaised, revision: 0, uncertain: false },
  ...more
})

const judged = (entry: AlertEntry, at: number, value: number, state: AlertReading["state"]) =>
  changeFor(
    entry,
    { readings: [reading(value, state)], at, watched: true, window: 10 * minute, more: {} },
    { worker: "w", nextId: () => "1" }
  ) ?? assert.fail("nothing changes")

describe("an alert that stays raised", () => {
  const decided = judged(entryOf(), start, 97.5, "bad")
  const { unrecorded: _, ...record } = decided
  const entry = entryOf({ record })
  const renewed = (at: number, value: number, of = entry) =>
    renewalFor(of, { at, readings: [reading(value, "bad")] })?.raised

  it("keeps the value at which it was raised, and gets the present one once a minute", () => {
    assert.isUndefined(renewed(start + minute - 1, 42))
    assert.isUndefined(renewed(start + minute, 97.501))
    const [alert] = renewed(start + minute, 98.617) ?? []
    assert.deepInclude(alert, { value: 97.5, currentValue: 98.62, raisedAt: start })
    assert.isUndefined(renewed(start + 2 * minute, 42, { ...entry, renewedAt: start + minute + 1 }))
  })

  it("gets none while a change of it is not recorded, or its record is not known", () => {
    assert.isUndefined(renewed(start + minute, 42, entryOf({ record: decided })))
    assert.isUndefined(renewed(start + minute, 42, { ...entry, uncertain: true }))
  })

  it("gets none where it is about a state", () => {
    const about = { ...reading(1, "bad"), name: "circuit-opened" as const }
    const raised = record.raised.map((alert) => ({ ...alert, name: about.name, value: 1 }))
    const open = entryOf({ record: { ...record, raised } })
    const found = { at: start + minute, readings: [{ ...about, value: 0 }] }
    assert.isUndefined(renewalFor(open, found))
  })

  it("is cleared with the value of that moment, and without the present one of before", () => {
    const raised = renewed(start + minute, 98.6) ?? []
    const cleared = judged(
      entryOf({ record: { ...record, raised } }),
      start + 9 * minute,
      100,
      "good"
    )
    assert.deepStrictEqual(cleared.raised, [])
    assert.strictEqual(cleared.unrecorded?.alert?.value, 100)
    assert.notProperty(cleared.unrecorded?.alert, "currentValue")
  })
})
