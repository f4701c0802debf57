import { assert, describe } from "@effect/vitest"
import { TimeoutError } from "@nats-io/transport-node"
import { Clock, Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { BrokerError } from "../../src/broker/broker-error.ts"
import { timeText } from "../../src/domain/timestamp.ts"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import type { NewToken } from "../../src/operations/token.ts"
import { alteredBroker } from "../kit/altered-broker.ts"
import { revokeTestToken, startConsole } from "../kit/console.ts"
import { eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const tokens = "/v1/tenants/acme/tokens"
const endpoints = "/v1/tenants/acme/endpoints"
const scopes = ["tokens:write", "endpoints:read"] as const
const idOf = (token: string): string => token.split("_")[1] ?? ""

/** A console, and what makes tokens with a token. */
const making = Effect.gen(function* () {
  const { ask, token: make, url } = yield* startConsole()
  const create = (token: string, body: object) => ask(tokens, { method: "POST", token, body })
  const revoke = (token: string, id: string) => ask(`${tokens}/${id}`, { method: "DELETE", token })
  /** Makes one that works, and returns it. */
  const child = (token: string, { expiresAt, ...body }: Partial<NewToken> = {}) =>
    Effect.gen(function* () {
      const expiry = expiresAt === undefined ? {} : { expiresAt: timeText(expiresAt) }
      const made = yield* create(token, { scopes, ...body, ...expiry })
      assert.strictEqual(made.status, 201, made.text)
      const its = String(made.json.token)
      yield* eventually(ask(endpoints, { token: its }), ({ status }) => status === 200)
      return { token: its, id: idOf(its), made: made.json }
    })
  const untilRefused = (token: string) =>
    eventually(ask(endpoints, { token }), ({ status }) => status === 401)
  return { ask, make, url, create, revoke, child, untilRefused }
})

describe.concurrent("a token that was made with another one", () => {
  scenario("has neither a higher rate nor a longer life", () =>
    Effect.gen(function* () {
      const { child, create, make } = yield* making
      const expiresAt = (yield* Clock.currentTimeMillis) + 3_600_000
      const parent = yield* make({ scopes: [...scopes], rate: 50, expiresAt })
      const { made } = yield* eventually(
        Effect.exit(child(parent)),
        ({ _tag }) => _tag === "Success"
      ).pipe(Effect.flatten)
      assert.deepInclude(made, { rate: 50, expiresAt: timeText(expiresAt), parent: idOf(parent) })
      for (const more of [{ rate: 51 }, { expiresAt: timeText(expiresAt + 1) }]) {
        const refused = yield* create(parent, { scopes, ...more })
        assert.strictEqual(refused.status, 403, refused.text)
      }
      const less = yield* child(parent, { rate: 10, expiresAt: expiresAt - 1 })
      assert.deepInclude(less.made, { rate: 10, expiresAt: timeText(expiresAt - 1) })
      // One that has no rate of its own has the usual one, and gives no more.
      const usual = yield* make({ scopes: [...scopes] })
      assert.strictEqual((yield* create(usual, { scopes, rate: 1_001 })).status, 403)
      assert.deepInclude((yield* child(usual)).made, { rate: 1_000 })
    })
  )

  scenario("is shown by its id to its tenant, without its secret", () =>
    Effect.gen(function* () {
      const { ask, child, make } = yield* making
      const parent = yield* make({ scopes: [...scopes] })
      const { id, made, token } = yield* child(parent)
      const shown = yield* ask(`${tokens}/${id}`, { token: parent })
      const { token: _, ...known } = made
      assert.deepStrictEqual(shown.json, known)
      assert.notInclude(shown.text, token)
      const stranger = yield* make({ tenant: "globex", scopes: [...scopes] })
      const path = `/v1/tenants/globex/tokens/${id}`
      assert.strictEqual((yield* ask(path, { token: stranger })).status, 404)
      assert.strictEqual((yield* ask(`${tokens}/none`, { token: parent })).status, 404)
    })
  )

  scenario("is revoked with it, and so are those that were made with it in turn", () =>
    Effect.gen(function* () {
      const { ask, child, make, untilRefused, url } = yield* making
      const parent = yield* make({ scopes: [...scopes, "deliveries:read"] })
      const [one, other] = [
        yield* child(parent, { scopes: [...scopes, "deliveries:read"] }),
        yield* make({ scopes: [...scopes] })
      ]
      const grandchild = yield* child(one.token, { scopes: [...scopes, "deliveries:read"] })
      const followed = yield* Effect.promise(() =>
        fetch(`${url}/v1/tenants/acme/live`, {
          headers: { authorization: `Bearer ${grandchild.token}` }
        })
      )
      assert.strictEqual(followed.status, 200)
      const ended = Effect.promise(() => followed.text())
      const revokedAt = yield* Clock.currentTimeMillis
      const revoked = yield* revokeTestToken(idOf(parent))
      assert.sameMembers([...revoked.with], [one.id, grandchild.id])
      yield* untilRefused(grandchild.token)
      yield* untilRefused(one.token)
      assert.isBelow((yield* Clock.currentTimeMillis) - revokedAt, 1_000)
      assert.include(yield* ended, ": following")
      const listed = yield* ask(tokens, { token: other })
      assert.notInclude(listed.text, one.id)
    })
  )

  scenario("revokes what it made, and neither its maker nor those that may do more", () =>
    Effect.gen(function* () {
      const { child, make, revoke, untilRefused } = yield* making
      const parent = yield* make({ scopes: [...scopes] })
      const greater = yield* make({ scopes: [...scopes, "secrets:read"] })
      const one = yield* child(parent)
      for (const id of [idOf(parent), idOf(greater)]) {
        const refused = yield* revoke(one.token, id)
        assert.strictEqual(refused.status, 403, refused.text)
      }
      const grandchild = yield* child(one.token)
      const gone = yield* revoke(one.token, grandchild.id)
      assert.strictEqual(gone.status, 200, gone.text)
      yield* untilRefused(grandchild.token)
      // And itself.
      assert.strictEqual((yield* revoke(one.token, one.id)).status, 200)
      yield* untilRefused(one.token)
    })
  )

  scenario("makes others, and these others, up to a bound", () =>
    Effect.gen(function* () {
      const { child, create, make } = yield* making
      let last = yield* make({ scopes: [...scopes] })
      for (let made = 1; made < 8; made++) last = (yield* child(last)).token
      const refused = yield* create(last, { scopes })
      assert.strictEqual(refused.status, 403, refused.text)
    })
  )
})

describe.concurrent("a tenant", () => {
  scenario("has only so many tokens, however many are asked for at once", () =>
    Effect.gen(function* () {
      const { child, create, make } = yield* making
      yield* setTenant("acme", { maxTokens: 20 }, "ana")
      const parent = yield* make({ scopes: [...scopes] })
      const answers = yield* Effect.all(
        Array.from({ length: 60 }, () => create(parent, { scopes })),
        { concurrency: 30 }
      )
      const made = answers.filter(({ status }) => status === 201)
      assert.lengthOf(made, 19)
      const refused = answers.find(({ status }) => status === 409)
      assert.lengthOf(
        answers.filter(({ status }) => status === 409),
        41
      )
      assert.strictEqual(
        refused?.json.detail,
        "acme has 20 tokens, which is the maximum: remove some, or have an operator raise it"
      )
      // Another tenant has its own.
      const theirs = yield* make({ tenant: "globex", scopes: [...scopes] })
      assert.isString(theirs)
      const [gone = ""] = made.map(({ json }) => String(json.id))
      yield* revokeTestToken(gone)
      yield* eventually(create(parent, { scopes }), ({ status }) => status === 201)
      assert.strictEqual((yield* create(parent, { scopes })).status, 409)
      yield* setTenant("acme", { maxTokens: 30 }, "ana")
      yield* child(parent)
    })
  )

  scenario("has room again when tokens have expired", () =>
    Effect.gen(function* () {
      const { child, create, make } = yield* making
      const parent = yield* make({ scopes: [...scopes] })
      yield* setTenant(undefined, { maxTokens: 3 }, "ana")
      const expiresAt = (yield* Clock.currentTimeMillis) + 1_500
      for (let made = 0; made < 2; made++) yield* child(parent, { expiresAt })
      assert.strictEqual((yield* create(parent, { scopes })).status, 409)
      yield* eventually(create(parent, { scopes }), ({ status }) => status === 201)
      yield* child(parent)
      assert.strictEqual((yield* create(parent, { scopes })).status, 409)
    })
  )
})

/** A console that cannot read the tokens for as long as `isFailing`. */
const withoutTokens = Effect.fnUntraced(function* (cause: Error) {
  const { names } = yield* Broker
  const state = { isFailing: false }
  const altered = yield* alteredBroker(({ streamInfo }) => ({
    streamInfo: (operation, stream, options) =>
      Effect.suspend(() =>
        state.isFailing && stream === `KV_${names.buckets.tokens}`
          ? Effect.fail(new BrokerError({ operation, cause }))
          : streamInfo(operation, stream, options)
      )
  }))
  const { ask, token: make } = yield* Effect.provideService(startConsole(), Broker, altered)
  const token = yield* make()
  const answer = Effect.map(ask(endpoints, { token }), ({ status }) => status)
  return { state, answer }
})

describe.concurrent("a console that cannot find out which tokens were revoked", () => {
  scenario("takes none while the broker refuses that, and all while it does not answer", () =>
    Effect.gen(function* () {
      const refused = yield* withoutTokens(new Error("permissions violation"))
      const unanswered = yield* withoutTokens(new TimeoutError())
      assert.strictEqual(yield* refused.answer, 200)
      refused.state.isFailing = true
      unanswered.state.isFailing = true
      yield* eventually(refused.answer, (status) => status === 503)
      assert.strictEqual(yield* unanswered.answer, 200)
      refused.state.isFailing = false
      yield* eventually(refused.answer, (status) => status === 200)
    })
  )
})
