import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { AlertName } from "../../src/domain/alert.ts"
import { endpointAlerts } from "../../src/domain/alert.ts"
import type { AlertReading } from "../../src/policy/alert-reading.ts"
import { groupChange } from "../../src/policy/alert-reading.ts"

type State = AlertReading["state"]

const reading = (name: AlertName, state: State): AlertReading => ({
  ...{ name, state, level: "warn", threshold: 1, unit: "percent", quiet: false }
})

/** What changes where some alerts about an endpoint read so, and all others are well. */
const changed = (raised: AlertName | undefined, states: Partial<Record<AlertName, State>>) => {
  const readings = endpointAlerts.map((name) => reading(name, states[name] ?? "good"))
  const change = groupChange(raised, readings, true)
  return change === undefined
    ? "nothing"
    : [change.transition, change.reading.name, ...change.also].join(" ")
}

describe("of the alerts about one endpoint", () => {
  it.each([
    ["none is raised where all is well", undefined, {}, "nothing"],
    [
      "the worst is raised, and names the others",
      undefined,
      {
        "status-repeated": "bad",
        "retries-high": "bad",
        "success-low": "bad",
        "success-critical": "bad",
        "failures-in-row": "bad"
      },
      "raise success-critical status-repeated success-low failures-in-row retries-high"
    ],
    [
      "a warning waits while a critical one is raised",
      "success-critical",
      { "success-critical": "bad", "dead-letters": "bad" },
      "nothing"
    ],
    [
      "what says the same is not told again",
      "status-repeated",
      { "status-repeated": "bad", "circuit-opened": "bad", "success-low": "bad" },
      "nothing"
    ],
    [
      "what is worse replaces it",
      "status-repeated",
      { "status-repeated": "bad", "success-critical": "bad" },
      "replace success-critical status-repeated"
    ],
    [
      "dead letters replace failures that may still be made good",
      "circuit-opened",
      { "circuit-opened": "bad", "dead-letters": "bad" },
      "replace dead-letters circuit-opened"
    ],
    [
      "failures replace slowness",
      "median-slow",
      { "median-slow": "bad", "circuit-opened": "bad" },
      "replace circuit-opened median-slow"
    ],
    [
      "what is left replaces one that is over",
      "endpoint-disabled",
      { "dead-letters": "bad" },
      "replace dead-letters"
    ],
    [
      "what wavers does not replace one that is over",
      "success-critical",
      { "success-low": "between" },
      "clear success-critical"
    ],
    [
      "the raised one stays while it wavers",
      "success-critical",
      { "success-critical": "between", "success-low": "bad" },
      "nothing"
    ],
    [
      "one that nobody wants gives way",
      "success-low",
      { "success-low": "off", "median-slow": "bad" },
      "replace median-slow"
    ]
  ] as const)("%s", (_, raised, states, expected) => {
    assert.strictEqual(changed(raised, states), expected)
  })

  const states = Schema.Array(Schema.Literals(["bad", "good", "between", "unknown", "off"]))
  it.prop("at most one changes, and none twice on the same readings", [states], ([given]) => {
    const readings = endpointAlerts.map((name, place) => reading(name, given[place] ?? "good"))
    const first = groupChange(undefined, readings, true)
    assert.strictEqual(
      first?.transition,
      readings.some(({ state }) => state === "bad") ? "raise" : undefined
    )
    assert.isUndefined(first && groupChange(first.reading.name, readings, true))
  })
})

describe("of the alerts about one tenant", () => {
  it("the worst is raised alone, too", () => {
    const names = ["success-low", "success-critical", "tenant-dead-letters"] as const
    const readings = names.map((name) => reading(name, "bad"))
    assert.deepInclude(groupChange(undefined, readings, true), {
      transition: "raise",
      also: ["tenant-dead-letters", "success-low"]
    })
  })
})
