import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import type { TenantAlertChoice } from "../../../src/domain/alert.ts"
import { thresholdsView } from "../../../src/operations/alerts/alerts.ts"

const stored = (choice: TenantAlertChoice) => ({
  system: { window: Duration.minutes(5), circuitOpened: "off" as const },
  tenants: new Map([["acme", choice]])
})

describe("thresholds, as they are shown", () => {
  it("are those of a tenant over those of the system, and say which were set there", () => {
    const view = thresholdsView(stored({ successWarnPercent: 98, contact: "ana" }), "acme", 7)
    assert.deepInclude(view, { tenant: "acme", contact: "ana" })
    assert.deepStrictEqual(view.set, ["successWarnPercent", "contact"])
    assert.deepInclude(view.thresholds, {
      successWarnPercent: 98,
      window: "5 min",
      circuitOpened: "off",
      endpointDisabled: "on"
    })
    assert.notProperty(view.thresholds, "circuitsOpen")
    assert.deepStrictEqual(thresholdsView(stored("off"), "other", 7).set, [])
  })

  it("are all off where a tenant has none", () => {
    const { off, set, thresholds } = thresholdsView(stored("off"), "acme", 7)
    assert.deepStrictEqual([off, set, thresholds.endpointDisabled], [true, [], "off"])
  })

  it("are those of the system without a tenant", () => {
    const view = thresholdsView(stored("off"), undefined, 7)
    assert.notProperty(view, "tenant")
    assert.property(view.thresholds, "circuitsOpen")
    assert.deepStrictEqual(view.set, ["window", "circuitOpened"])
  })

  it("say which tenant gets the alerts about the system", () => {
    const system = { systemAlertsTo: "platform" }
    const view = thresholdsView({ system, tenants: new Map() }, undefined, 7)
    assert.deepInclude(view, { systemAlertsTo: "platform", set: ["systemAlertsTo"] })
    assert.notProperty(view.thresholds, "systemAlertsTo")
    assert.notProperty(thresholdsView({ system, tenants: new Map() }, "acme", 7), "systemAlertsTo")
  })
})
