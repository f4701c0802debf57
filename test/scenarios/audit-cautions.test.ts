import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { audit } from "../../src/history/audit/audit.ts"
import { run } from "../cli/in-process.ts"
import { quiet } from "../kit/consistency.ts"
import { publishTo, worker } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const publishAll = (ids: ReadonlyArray<readonly [tenant: string, id?: string]>) =>
  Effect.forEach(ids, ([tenant, id]) =>
    publishTo(`${tenant}.a`, "{}", id === undefined ? {} : { "Nats-Msg-Id": id })
  )

describe.concurrent("an audit of tenants that publish to one stream", () => {
  scenario("counts, without calling it a problem, what has an id that may be another's", (place) =>
    Effect.gen(function* () {
      yield* worker()
      yield* publishAll([
        ["acme", "acme.1"],
        ["acme", "invoice-2"],
        ["acme", "invoice-3"],
        ["acme"],
        ["globex", "globex/1"]
      ])
      yield* quiet
      const { cautions, judgement } = yield* audit({})
      assert.strictEqual(judgement.verdict, "clean")
      assert.deepStrictEqual(
        cautions.map(({ events, kind, tenant }) => [kind, tenant, events]),
        [["ids-without-tenant", "acme", 2]]
      )
      const { code, out } = yield* run(
        ...["audit", "--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      )
      assert.strictEqual(code, 0)
      assert.include(out.join(" "), "Caution: ids-without-tenant: 2 events of acme: their ids")
    })
  )

  scenario("has nothing to say where there is one tenant", () =>
    Effect.gen(function* () {
      yield* worker()
      yield* publishAll([
        ["acme", "1"],
        ["acme", "2"]
      ])
      yield* quiet
      assert.deepStrictEqual((yield* audit({})).cautions, [])
    })
  )
})
