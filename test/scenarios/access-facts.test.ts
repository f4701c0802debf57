import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { factLine } from "../../src/text/fact-line.ts"
import { isClean } from "../kit/consistency.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, history, secret, worker } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const idOf = (token: string): string => token.split("_")[1] ?? ""

describe("the history", () => {
  scenario("says who made and revoked tokens, and who saw and rotated secrets", () =>
    Effect.gen(function* () {
      const facts = yield* history
      yield* worker()
      yield* endpoint({ headers: { authorization: "Bearer s3cret" } })
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ name: "the shop" })
      const by = `token ${idOf(token)} (the shop)`
      const scopes = ["tokens:write", "endpoints:read"]
      const tokens = "/v1/tenants/acme/tokens"
      const made = yield* ask(tokens, { method: "POST", token, body: { scopes, name: "a till" } })
      const its = String(made.json.token)
      const hook = "/v1/tenants/acme/endpoints/hook"
      const revealed = yield* ask(`${hook}/secret`, { token })
      assert.include(revealed.text, secret)
      const rotated = yield* ask(`${hook}/rotate`, { method: "POST", token })
      assert.strictEqual(rotated.status, 200)
      assert.strictEqual(
        (yield* ask(`${tokens}/${idOf(token)}`, { method: "DELETE", token })).status,
        200
      )
      yield* facts.count("token-created", 2)
      yield* facts.count("token-revoked", 2)
      yield* facts.count("secrets-revealed", 1)
      const [first, second] = facts.of("token-created")
      assert.deepInclude(first, { tenant: "acme", endpoint: "_", by: "test" })
      assert.deepInclude(second, { tenant: "acme", by })
      assert.deepInclude(second?.token, {
        ...{ id: idOf(its), name: "a till", scopes, rate: 1_000, parent: idOf(token) }
      })
      const gone = facts.of("token-revoked")
      assert.sameDeepMembers(
        gone.map(({ by, reason, token }) => [token?.id, by, reason]),
        [
          [idOf(token), by, undefined],
          [idOf(its), by, `with ${idOf(token)}`]
        ]
      )
      assert.deepInclude(facts.of("secrets-revealed")[0], { tenant: "acme", endpoint: "hook", by })
      const change = facts.changes.find(({ change }) => change?.revision === rotated.json.revision)
      assert.strictEqual(change?.by, by)
      assert.lengthOf(change?.change?.now?.secrets ?? [], 2)
      const all = JSON.stringify([...facts.facts, ...facts.changes])
      for (const hidden of [token, its, secret, "s3cret"]) assert.notInclude(all, hidden)
      const line = factLine(
        second ?? { v: 1, kind: "token-created", at: 0, tenant: "acme", endpoint: "_" },
        { colour: false, now: 0 }
      )
      assert.include(line, `token ${idOf(its)} (a till) made by ${by}`)
      yield* isClean
    })
  )
})
