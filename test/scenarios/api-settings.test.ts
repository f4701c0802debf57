import { assert, describe } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { OutlinedPolicy } from "../../src/operations/endpoints/outlined-policy.ts"
import type { Answer } from "../kit/console.ts"
import { startConsole } from "../kit/console.ts"
import { history, nth } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const acme = "/v1/tenants/acme"

/** A console, and how an operator, acme and globex ask it. */
const asking = Effect.gen(function* () {
  const { ask, token: make } = yield* startConsole()
  const as = (token: string) => (method: string, path: string, body?: unknown) =>
    ask(path, { method, token, body })
  return {
    operator: as(yield* make({ tenant: "*" })),
    tenant: as(yield* make()),
    other: as(yield* make({ tenant: "globex" })),
    reader: as(yield* make({ scopes: ["endpoints:read"] })),
    powerless: as(yield* make({ scopes: ["events:publish"] }))
  }
})

const statuses = (answers: ReadonlyArray<Answer>) => answers.map(({ status }) => status)

describe.concurrent("what holds for a tenant", () => {
  scenario("is seen by it, changed by operators only, and in the history", () =>
    Effect.gen(function* () {
      const facts = yield* history
      const { operator, other, powerless, reader, tenant } = yield* asking
      const path = `${acme}/settings`
      assert.deepStrictEqual(
        statuses([
          yield* tenant("PATCH", path, { hostCap: 5 }),
          yield* other("GET", path),
          yield* powerless("GET", path),
          yield* tenant("GET", "/v1/settings"),
          yield* tenant("PATCH", "/v1/settings", { hostCap: 5 }),
          yield* operator("PATCH", path, { hostCap: 0 }),
          yield* operator("PATCH", path, { maxTimeout: "2 days" })
        ]),
        [403, 403, 403, 403, 403, 400, 400]
      )
      const changed = yield* operator("PATCH", path, { hostCap: 5, maxTimeout: "10 minutes" })
      assert.deepInclude(changed.json, { hostCap: 5, changed: ["hostCap", "maxTimeout"] })
      yield* operator("PATCH", "/v1/settings", { hostCap: 50, forwardHeaders: { "x-id": true } })
      const shown = yield* reader("GET", path)
      assert.deepInclude(shown.json, { tenant: "acme", hostCap: 5, maxTimeout: "10 minutes" })
      assert.deepInclude(shown.json.system, { hostCap: 50, forwardHeaders: ["x-id"] })
      const back = yield* operator("PATCH", path, { hostCap: null })
      assert.notProperty(back.json, "hostCap")
      yield* facts.count("settings-changed", 3)
      assert.match(String(nth(facts.of("settings-changed"), 0).by), /^token /)
    })
  )

  scenario("has thresholds of alerts, its own or the system's", () =>
    Effect.gen(function* () {
      const facts = yield* history
      const { operator, other, reader, tenant } = yield* asking
      const path = `${acme}/alert-thresholds`
      assert.deepStrictEqual(
        statuses([
          yield* reader("PUT", path, { alerts: "off" }),
          yield* other("GET", path),
          yield* other("PUT", path, { alerts: "off" }),
          yield* tenant("PUT", "/v1/alert-thresholds", { alerts: null }),
          yield* tenant("PUT", path, { alerts: { successWarnPercent: 101 } }),
          yield* tenant("PUT", path, {}),
          yield* operator("PUT", "/v1/alert-thresholds", { alerts: "off" })
        ]),
        [403, 403, 403, 403, 400, 400, 400]
      )
      yield* operator("PUT", "/v1/alert-thresholds", { alerts: { successWarnPercent: 90 } })
      const before = yield* reader("GET", path)
      assert.deepInclude(before.json, { tenant: "acme", set: [] })
      assert.deepInclude(before.json.thresholds, { successWarnPercent: 90 })
      const alerts = { successWarnPercent: 98, window: "30 minutes", contact: "ops" }
      const set = yield* tenant("PUT", path, { alerts })
      assert.deepInclude(set.json, { contact: "ops", set: Object.keys(alerts) })
      assert.deepInclude((yield* reader("GET", path)).json.thresholds, { successWarnPercent: 98 })
      const theirs = yield* other("GET", "/v1/tenants/globex/alert-thresholds")
      assert.deepInclude(theirs.json.thresholds, { successWarnPercent: 90 })
      assert.deepInclude((yield* tenant("PUT", path, { alerts: "off" })).json, { off: true })
      const none = yield* tenant("PUT", path, { alerts: null })
      assert.deepInclude(none.json, { set: [] })
      assert.notProperty(none.json, "off")
      // What is so already is no change.
      yield* tenant("PUT", path, { alerts: null })
      yield* operator("PUT", "/v1/alert-thresholds", { alerts: null })
      yield* facts.count("thresholds-changed", 5)
      const changes = facts.of("thresholds-changed")
      assert.deepStrictEqual(
        changes.map(({ tenant, thresholds }) => [tenant, thresholds?.now]),
        [
          ["_", { successWarnPercent: 90 }],
          ["acme", alerts],
          ["acme", "off"],
          ["acme", undefined],
          ["_", undefined]
        ]
      )
      for (const { by } of changes) assert.match(String(by), /^token /)
    })
  )

  scenario("is changed at the revision that is known only, if the request names one", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ tenant: "*" })
      const send = (method: string, path: string, body?: unknown, headers = {}) =>
        ask(path, { method, token, body, headers })
      const etagOf = (answer: { readonly headers: Headers }) => answer.headers.get("etag") ?? ""
      const source = `${acme}/sources/hub`
      const settings = { provider: "github", secrets: ["secret-of-the-hub"] }
      const added = yield* send("POST", source, settings)
      assert.deepStrictEqual([added.status, etagOf(added)], [201, `"${added.json.revision}"`])
      for (const [path, method, first, second] of [
        [source, "PATCH", { rate: "5/s" }, { rate: "6/s" }],
        [`${source}/rotate`, "POST", { secret: "second" }, { secret: "third" }],
        [`${acme}/settings`, "PATCH", { hostCap: 5 }, { hostCap: 6 }],
        ["/v1/settings", "PATCH", { hostCap: 50 }, { hostCap: 60 }],
        [
          `${acme}/alert-thresholds`,
          "PUT",
          { alerts: { deadLetters: 5 } },
          { alerts: { deadLetters: 6 } }
        ],
        ["/v1/alert-thresholds", "PUT", { alerts: { deadLetters: 7 } }, { alerts: null }]
      ] as const) {
        const shown = path.replace("/rotate", "")
        const unset = yield* send("GET", shown)
        assert.match(etagOf(unset), /^"\d+"$/, path)
        const set = yield* send(method, path, first, { "if-match": etagOf(unset) })
        assert.strictEqual(set.status, 200, set.text)
        assert.strictEqual(etagOf(set), `"${set.json.revision}"`, path)
        assert.strictEqual(etagOf(yield* send("GET", shown)), etagOf(set), path)
        const stale = yield* send(method, path, second, { "if-match": etagOf(unset) })
        assert.strictEqual(stale.status, 412, `${path}: ${stale.text}`)
        assert.strictEqual(stale.json.type, "urn:petrel:problem:revision-mismatch")
        assert.include(stale.text, `at revision ${set.json.revision} now`)
        const odd = yield* send(method, path, second, { "if-match": "5" })
        assert.strictEqual(odd.status, 400, path)
        const known = yield* send(method, path, second, { "if-match": etagOf(set) })
        assert.strictEqual(known.status, 200, known.text)
      }
      const stale = yield* send("DELETE", source, undefined, { "if-match": etagOf(added) })
      assert.strictEqual(stale.status, 412, stale.text)
      const now = yield* send("GET", source)
      const gone = yield* send("DELETE", source, undefined, { "if-match": etagOf(now) })
      assert.strictEqual(gone.status, 200, gone.text)
    })
  )

  scenario("can choose among presets, each with its waits", () =>
    Effect.gen(function* () {
      const { other, reader } = yield* asking
      const path = `${acme}/retry-presets`
      assert.strictEqual((yield* other("GET", path)).status, 403)
      const { json } = yield* reader("GET", path)
      const presets = json.presets as ReadonlyArray<Record<string, unknown>>
      const stripe = nth(
        presets.filter(({ name }) => name === "stripe"),
        0
      )
      const waits = stripe.waits as ReadonlyArray<unknown>
      assert.isTrue(waits.length > 0 && waits.every((wait) => typeof wait === "string"))
      assert.containsAllKeys(stripe.policy, ["backoff", "maxAttempts", "window"])
      // With what the jitter makes of each wait.
      const outline = Schema.decodeUnknownSync(OutlinedPolicy)(stripe.outline)
      assert.lengthOf(outline.waits, waits.length)
      assert.isTrue(outline.waits.every(({ least, most }) => least > 0 && least <= most))
      // A duration is a text, as in the policy itself.
      const { window } = stripe.policy as { readonly window: string }
      assert.deepInclude(stripe.outline as object, { window })
    })
  )
})

describe.concurrent("the changes of an endpoint", () => {
  scenario("are listed newest first, also once it is removed, without its secrets", () =>
    Effect.gen(function* () {
      const { other, powerless, tenant } = yield* asking
      const one = `${acme}/endpoints/e`
      const secret = "bearer-of-acme"
      const headers = { authorization: secret }
      yield* tenant("PUT", one, { url: "https://example.com/secret-path", headers })
      yield* tenant("PATCH", one, { metadata: { plan: "gold" }, description: "Bills" })
      yield* tenant("POST", `${one}/pause`, { reason: "maintenance" })
      yield* tenant("DELETE", one)
      const path = `${one}/history`
      assert.deepStrictEqual(
        statuses([
          yield* other("GET", path),
          yield* powerless("GET", path),
          yield* tenant("GET", `${acme}/endpoints/none/history`),
          yield* tenant("GET", `${path}?cursor=bm9uc2Vuc2U`)
        ]),
        [403, 403, 404, 400]
      )
      const found: Array<Record<string, unknown>> = []
      let cursor = ""
      do {
        const { json, text } = yield* tenant("GET", `${path}?limit=3${cursor}`)
        for (const hidden of [secret, "secret-path", "whsec_"]) assert.notInclude(text, hidden)
        found.push(...(json.changes as ReadonlyArray<Record<string, unknown>>))
        cursor = json.next === undefined ? "" : `&cursor=${String(json.next)}`
      } while (cursor !== "")
      assert.deepStrictEqual(
        found.map(({ change }) => change),
        ["removed", "changed", "changed", "added"]
      )
      const time = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
      for (const { at, by } of found) {
        assert.match(String(at), time)
        assert.match(String(by), /^token /)
      }
      const [paused, described] = found
        .slice(1)
        .map(({ differences }) => differences as ReadonlyArray<Record<string, unknown>>)
      assert.deepStrictEqual(described, [
        { setting: "description", to: "Bills" },
        { setting: "metadata.plan", to: "gold" }
      ])
      const difference = nth(paused ?? [], 0)
      assert.strictEqual(difference.setting, "paused")
      assert.match(String((difference.to as { readonly at: unknown }).at), time)
    })
  )
})
