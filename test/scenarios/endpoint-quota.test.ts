import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { removeEndpoint } from "../../src/operations/endpoints/change-state.ts"
import { addEndpoint } from "../../src/operations/endpoints/write-endpoint.ts"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import { startConsole } from "../kit/console.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const url = "https://example.com/"
const sentence =
  "acme has 20 endpoints, which is the maximum: remove some, or have an operator raise it"

describe.concurrent("a tenant", () => {
  scenario("has only so many endpoints, however many are added at once", () =>
    Effect.gen(function* () {
      yield* setTenant(undefined, { maxEndpoints: 20 }, "ana")
      const { ask, token: make } = yield* startConsole()
      const [token, theirs] = [yield* make(), yield* make({ tenant: "globex" })]
      const put = (id: string, who = token, tenant = "acme") =>
        ask(`/v1/tenants/${tenant}/endpoints/${id}`, { method: "PUT", token: who, body: { url } })
      const answers = yield* Effect.all(
        Array.from({ length: 60 }, (_, n) => put(`e${n}`)),
        { concurrency: 30 }
      )
      const added = answers.filter(({ status }) => status === 201)
      const refused = answers.filter(({ status }) => status === 409)
      assert.deepStrictEqual([added.length, refused.length], [20, 40])
      assert.strictEqual(refused[0]?.json.detail, sentence)
      // What is there can be changed, and another tenant has a quota of its own.
      const [first] = added
      assert.strictEqual((yield* put(String(first?.json.id))).status, 200)
      assert.strictEqual((yield* put("e", theirs, "globex")).status, 201)
      yield* removeEndpoint({ tenant: "acme", id: String(first?.json.id) }, "ana")
      yield* eventually(put("new"), ({ status }) => status === 201)
      assert.strictEqual((yield* put("newer")).status, 409)
      const { text } = yield* ask("/metrics")
      assert.match(text, /petrel_refused_requests_total\{bound="maxEndpoints"\} [1-9]/)
      yield* setTenant("acme", { maxEndpoints: 21 }, "ana")
      assert.strictEqual((yield* put("newer")).status, 201)
    })
  )

  scenario("has no more from the command line", () =>
    Effect.gen(function* () {
      yield* setTenant("acme", { maxEndpoints: 2 }, "ana")
      const add = (id: string) => addEndpoint({ tenant: "acme", id }, { url }, "ana")
      yield* add("one")
      yield* removeEndpoint({ tenant: "acme", id: "one" }, "ana")
      yield* add("two")
      yield* add("three")
      const refused = yield* Effect.flip(add("four"))
      assert.propertyVal(refused, "_tag", "QuotaReached")
      assert.include(refused.message, "`petrel tenant set acme --max-endpoints N`")
    })
  )
})
