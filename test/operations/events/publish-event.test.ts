import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { publishEvent } from "../../../src/operations/events/publish-events.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()
const body = Buffer.from("{}")

describe("publishing an event", () => {
  scenario("stores it once under its id, and makes an id where none is given", () =>
    Effect.gen(function* () {
      const event = { tenant: "acme", type: "invoice.paid", id: "7", headers: { "x-a": "1" } }
      const first = yield* publishEvent(event, body)
      const { tenant, type } = event
      const known = { id: "acme.7", tenant, type, seq: 1, unsent: ["x-a"] }
      assert.deepStrictEqual(first, { ...known, duplicate: false })
      assert.deepStrictEqual(yield* publishEvent(event, body), { ...known, duplicate: true })
      const made = yield* publishEvent({ tenant, type }, body)
      assert.match(made.id, /^acme\.evt_[0-9a-f]{24}$/)
    })
  )

  scenario("says by field what is wrong, and by reason what the broker does not store", () =>
    Effect.gen(function* () {
      const wrong = yield* Effect.flip(publishEvent({ tenant: "a.b", type: "x y" }, body))
      assert.propertyVal(wrong, "_tag", "Invalid")
      const event = { tenant: "acme", type: "invoice.paid" }
      const large = yield* Effect.flip(publishEvent(event, Buffer.alloc(1_000_000)))
      assert.deepInclude(large, { _tag: "EventNotStored", reason: "too-large" })
    })
  )
})
