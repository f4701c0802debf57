import { assert, describe, it } from "@effect/vitest"
import { type AnswersInARow, rowReadings } from "../../src/policy/status-limit.ts"

const states = (inARow: AnswersInARow | "none" | "unknown", isOn = true) =>
  rowReadings(inARow, isOn).map(({ state }) => state)

const row = (status: string, count: number, alert?: number): AnswersInARow => ({
  status,
  count,
  alert
})

describe("the alert about answers of a status in a row", () => {
  it("has a name of its own for 404", () => {
    const names = rowReadings("none", true).map(({ name }) => name)
    assert.deepStrictEqual(names, ["endpoint-not-found", "status-repeated"])
  })

  it.each([
    ["none", "good", "good"],
    ["unknown", "between", "between"],
    [row("404", 2, 3), "between", "good"],
    [row("404", 3, 3), "bad", "good"],
    [row("404", 9, 3), "bad", "good"],
    [row("404", 9), "good", "good"],
    [row("503", 1, 2), "good", "between"],
    [row("5xx", 2, 2), "good", "bad"]
  ] as const)("of %j is %s for 404 and %s for others", (inARow, notFound, repeated) => {
    assert.deepStrictEqual(states(inARow), [notFound, repeated])
  })

  it("says which status it is about, how often, and at which number it is raised", () => {
    const [, repeated] = rowReadings(row("5xx", 12, 10), true)
    assert.deepInclude(repeated, { status: "5xx", value: 12, threshold: 10, unit: "answers" })
  })

  it("is off where nobody wants it", () => {
    assert.deepStrictEqual(states(row("404", 3, 3), false), ["off", "off"])
  })
})
