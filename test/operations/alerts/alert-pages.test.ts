import { assert, describe, it } from "@effect/vitest"
import { pageOfAlerts, type RaisedAlertView } from "../../../src/operations/alerts/alerts.ts"

const alert = (
  about: RaisedAlertView["about"],
  raisedAt: number,
  id = `alert_${about}${raisedAt}`
): RaisedAlertView => ({
  ...{ id, name: "dead-letters", about, level: "warn", threshold: 1, unit: "dead letters" },
  ...{ windowMs: 1, raisedAt }
})

const idsOf = (page: { readonly alerts: ReadonlyArray<RaisedAlertView> }) =>
  page.alerts.map(({ id }) => id)

const raised = [
  alert("endpoint", 5),
  alert("endpoint", 7, "b"),
  alert("endpoint", 7, "a"),
  alert("tenant", 3),
  alert("tenant", 9),
  alert("system", 1)
]
const inOrder = ["alert_system1", "alert_tenant9", "alert_tenant3", "a", "b", "alert_endpoint5"]

describe("pages of alerts", () => {
  it("have each alert once, those about the system first and the newest of each kind", () => {
    const seen: Array<string> = []
    let after: ReturnType<typeof pageOfAlerts>["next"]
    do {
      const page = pageOfAlerts(raised, after, 2)
      assert.isAtMost(page.alerts.length, 2)
      assert.strictEqual(page.total, raised.length)
      seen.push(...idsOf(page))
      after = page.next
    } while (after !== undefined)
    assert.deepStrictEqual(seen, inOrder)
  })

  it("go on behind an alert that is over by now", () => {
    const { next } = pageOfAlerts(raised, undefined, 4)
    const left = raised.filter(({ id }) => id !== "a")
    assert.deepStrictEqual(idsOf(pageOfAlerts(left, next, 4)), ["b", "alert_endpoint5"])
  })

  it("end where as many are left as fit", () => {
    assert.isUndefined(pageOfAlerts(raised, undefined, 6).next)
    assert.isUndefined(pageOfAlerts([], undefined, 6).next)
  })
})
