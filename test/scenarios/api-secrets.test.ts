import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { mask } from "../../src/domain/settings/endpoint-table.ts"
import type { TokenScope } from "../../src/operations/token.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, history, secret, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const hook = "/v1/tenants/acme/endpoints/hook"
const write: ReadonlyArray<TokenScope> = ["endpoints:read", "endpoints:write"]
const credentials = { authorization: "Bearer s3cret", "x-key": "k3y" }

/** An endpoint with headers, and a console with a token that may change it. */
const changing = (scopes: ReadonlyArray<TokenScope> = write) =>
  Effect.gen(function* () {
    const old = yield* receiver()
    const elsewhere = yield* receiver()
    yield* endpoint({ url: old.url, headers: credentials })
    const facts = yield* history
    yield* worker()
    const { ask, token: make } = yield* startConsole()
    const token = yield* make({ scopes: [...scopes] as [TokenScope] })
    const patch = (body: object) => ask(hook, { method: "PATCH", token, body })
    const test = (body?: object) => ask(`${hook}/test`, { method: "POST", token, body })
    return { old, elsewhere, facts, patch, test }
  })

describe.concurrent("who may change endpoints and not see their secrets", () => {
  scenario("cannot send header values to another origin", () =>
    Effect.gen(function* () {
      const { elsewhere, facts, patch, test } = yield* changing()
      const moved = yield* patch({ url: elsewhere.url, headers: { "x-key": "mine" } })
      assert.strictEqual(moved.status, 200, moved.text)
      assert.deepStrictEqual(moved.json.headers, { "x-key": mask })
      assert.includeMembers(moved.json.changed as Array<string>, ["url", "headers"])
      assert.match(moved.text, /authorization .*dropped/)
      assert.match(moved.text, /rotate it if the new receiver belongs to someone else/)
      const [request] = yield* Effect.andThen(
        test(),
        Effect.sync(() => elsewhere.requests)
      )
      assert.strictEqual(request?.headers["x-key"], "mine")
      assert.notProperty(request?.headers, "authorization")
      const told = facts.changes.find(({ change }) => change?.revision === moved.json.revision)
      assert.deepStrictEqual(told?.change?.now?.headers, ["x-key"])
      assert.match(told?.by ?? "", /^token /)
    })
  )

  scenario("keeps them within the origin, and with secrets:read everywhere", () =>
    Effect.gen(function* () {
      const one = yield* changing()
      const within = yield* one.patch({ url: `${one.old.url}/elsewhere` })
      assert.deepStrictEqual(Object.keys(within.json.headers as object), Object.keys(credentials))
      assert.deepStrictEqual(within.json.changed, ["url"])
    })
  )

  scenario("moves headers along where it may see them, and is told so", () =>
    Effect.gen(function* () {
      const { elsewhere, patch, test } = yield* changing([...write, "secrets:read"])
      const moved = yield* patch({ url: elsewhere.url })
      assert.deepStrictEqual(moved.json.changed, ["url"])
      assert.match(moved.text, /also gets the headers authorization and x-key/)
      yield* test()
      assert.strictEqual(elsewhere.requests[0]?.headers.authorization, credentials.authorization)
    })
  )

  scenario("cannot have anything signed that a publisher could have published", () =>
    Effect.gen(function* () {
      const { old, test } = yield* changing()
      for (const body of [{ type: "invoice.paid" }, { body: '{"type":"invoice.paid"}' }]) {
        const refused = yield* test(body)
        assert.strictEqual(refused.status, 403, refused.text)
        assert.include(refused.text, "events:publish")
      }
      assert.lengthOf(old.requests, 0)
      const sent = yield* test({ type: "petrel.test" })
      assert.strictEqual(sent.status, 200, sent.text)
      const [request] = old.requests
      const signature = String(request?.headers["webhook-signature"])
      assert.match(signature, /^v1,/)
      assert.notInclude(sent.text, signature.slice(3))
      const headers = sent.json.headers as Array<string>
      assert.strictEqual(headers[headers.indexOf("webhook-signature") + 1], mask)
      // What is signed says that it is a test: the id, and the body.
      assert.match(String(request?.headers["webhook-id"]), /^petrel-test_/)
      assert.include(request?.body.toString(), '"type":"petrel.test"')
      assert.notInclude(sent.text, secret)
    })
  )

  scenario("sends any test where it may publish", () =>
    Effect.gen(function* () {
      const { old, test } = yield* changing([...write, "events:publish"])
      const sent = yield* test({ type: "invoice.paid", body: '{"total":1}' })
      assert.strictEqual(sent.status, 200, sent.text)
      assert.strictEqual(old.requests[0]?.body.toString(), '{"total":1}')
      assert.match(String(old.requests[0]?.headers["webhook-id"]), /^petrel-test_/)
    })
  )
})
