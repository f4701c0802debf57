import { assert, describe, it } from "@effect/vitest"
import { nowCells, nowRows } from "../../../../src/cli/commands/endpoint/view.ts"
import type { EndpointNow } from "../../../../src/delivery/introspection/endpoint-activity.ts"
import { activityView } from "../../../../src/operations/endpoints/endpoint-view.ts"
import { at, busy, orphan } from "../../../operations/endpoints/activities.ts"

const rows = (now: EndpointNow) => Object.fromEntries(nowRows(activityView(now), at))

describe("what goes on for an endpoint, for people", () => {
  it("is what is under way, what waits and where, and how the last hour was", () => {
    assert.deepStrictEqual(rows(busy), {
      "in flight": "4; 12 in line",
      waiting:
        "1,200 in the backlog, 20 in the queue, 3 scheduled for a later retry; those in flight or in line may be among them",
      "last hour": "1,204 attempts: 99.9% delivered, p50 12 ms, p95 1.5 s"
    })
    assert.deepStrictEqual(nowCells(activityView(busy)), [
      "4",
      "1,223",
      "1,204",
      "99.9%",
      "12 ms",
      "1.5 s"
    ])
  })

  it("says since when its owner counts, if that is not for long", () => {
    const answer = { since: at - 60_000, inFlight: 0, inLine: 0 }
    const one = { ...answer, attempts: 1, delivered: 0, p50Ms: 3, p95Ms: 3 }
    assert.strictEqual(
      rows({ ...busy, answer: one })["last hour"],
      "1 attempt since 10:31:00, when w1 took its partition: 0% delivered, p50 3 ms, p95 3 ms"
    )
    const none = { ...busy, answer: { ...answer, attempts: 0, delivered: 0 } }
    assert.match(rows(none)["last hour"] ?? "", /^no attempts since 10:31:00/)
    assert.deepStrictEqual(nowCells(activityView(none)), ["0", "1,223", "0", "-", "-", "-"])
  })

  it("says that nobody knows where nobody owns its partition", () => {
    assert.deepStrictEqual(rows(orphan), {
      "in flight": "not known: no worker owns partition 3 now",
      waiting: "1,200 in the backlog, 20 in the queue, 3 scheduled for a later retry",
      "last hour": "not known"
    })
    assert.deepStrictEqual(nowCells(activityView(orphan)), ["-", "1,223", "-", "-", "-", "-"])
    assert.strictEqual(
      rows({ ...orphan, owner: "w1" })["in flight"],
      "not known: w1, which has partition 3, does not answer now"
    )
  })

  it("says that schedules are too many to be looked through", () => {
    const many = { ...orphan, waiting: { queue: 1, schedules: undefined, backlog: 2 } }
    assert.match(rows(many).waiting ?? "", /, too many schedules to count$/)
    assert.strictEqual(nowCells(activityView(many))[1], "3+")
  })
})
