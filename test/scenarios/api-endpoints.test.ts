import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { healthy } from "../../src/domain/health.ts"
import { getEndpoint } from "../../src/endpoints/endpoint-store.ts"
import { eraseHealth, readHealth, writeHealth } from "../../src/endpoints/health-store.ts"
import type { Answer } from "../kit/console.ts"
import { startConsole } from "../kit/console.ts"
import { deadLetters, endpoint, eventually, history, nth, publish, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const acme = "/v1/tenants/acme/endpoints"
const etagOf = ({ headers }: Answer): string => headers.get("etag") ?? ""

describe.concurrent("endpoints over HTTP", () => {
  scenario("are added, changed at the revision that is known, and removed", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const one = `${acme}/billing`
      const send = (method: string, path: string, body?: unknown, headers = {}) =>
        ask(path, { method, token, body, headers })
      const settings = { url: "https://example.com/hooks", types: ["invoice.*"], maxInFlight: 7 }
      const none = yield* send("PUT", one, settings, { "if-match": '"5"' })
      assert.strictEqual(none.status, 412, none.text)
      const both = { "if-match": "*", "if-none-match": "*" }
      const never = yield* send("PUT", one, settings, both)
      assert.strictEqual(never.status, 400, never.text)
      const added = yield* send("PUT", one, settings, { "if-none-match": "*" })
      assert.strictEqual(added.status, 201, added.text)
      assert.match(String(added.json.secret), /^whsec_/)
      const again = yield* send("PUT", one, settings, { "if-none-match": "*" })
      assert.strictEqual(again.status, 412)
      const same = yield* send("PUT", one, settings)
      assert.deepStrictEqual([same.status, etagOf(same)], [200, etagOf(added)])
      assert.deepInclude(same.json, { changed: [] })

      const patched = yield* send("PATCH", one, { contact: "ops" }, { "if-match": etagOf(added) })
      assert.deepInclude(patched.json, { changed: ["contact"], contact: "ops", maxInFlight: 7 })
      const stale = yield* send("PATCH", one, { contact: null }, { "if-match": etagOf(added) })
      assert.strictEqual(stale.status, 412)
      assert.strictEqual(stale.json.type, "urn:petrel:problem:revision-mismatch")
      const staleRemoval = yield* send("DELETE", one, undefined, { "if-match": etagOf(added) })
      assert.strictEqual(staleRemoval.status, 412)
      const odd = yield* send("PATCH", one, {}, { "if-match": "5" })
      assert.strictEqual(odd.status, 400)

      yield* send("POST", `${one}/pause`, { reason: "maintenance" })
      const { url, types } = settings
      const replaced = yield* send("PUT", one, { url, types })
      assert.deepInclude(replaced.json, { maxInFlight: 10 })
      assert.notProperty(replaced.json, "contact")
      assert.deepInclude(replaced.json.paused, { reason: "maintenance" })
      const before = yield* ask(`${one}/secret`, { token })
      assert.include(before.text, String(added.json.secret))

      const rotated = yield* send("POST", `${one}/rotate`, { keepOld: "0 seconds" })
      assert.match(String(rotated.json.secret), /^whsec_/)
      const after = yield* ask(`${one}/secret`, { token })
      assert.notInclude(after.text, String(added.json.secret))
      const shown = yield* ask(one, { token })
      assert.notInclude(shown.text, "whsec_")

      const removed = yield* send("DELETE", one, undefined, { "if-match": etagOf(shown) })
      assert.strictEqual(removed.status, 200)
      assert.strictEqual((yield* ask(one, { token })).status, 404)
    })
  )

  scenario("are changed in every way at a revision that is known only", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const one = `${acme}/billing`
      const send = (method: string, path: string, headers = {}, body?: unknown) =>
        ask(path, { method, token, body, headers })
      const any = { "if-match": "*" }
      const none = yield* send("PUT", one, any, { url: "https://example.com/" })
      assert.strictEqual(none.status, 412, none.text)
      assert.include(none.text, "is not there")
      const added = yield* send("PUT", one, {}, { url: "https://example.com/" })
      assert.strictEqual((yield* send("PATCH", one, any, { contact: "a" })).status, 200)
      const stale = etagOf(added)
      for (const change of ["pause", "resume", "disable", "enable", "rotate"]) {
        const refused = yield* send("POST", `${one}/${change}`, { "if-match": stale })
        assert.strictEqual(refused.status, 412, `${change}: ${refused.text}`)
        const known = etagOf(yield* ask(one, { token }))
        const weak = yield* send("POST", `${one}/${change}`, { "if-match": `W/${known}` })
        assert.strictEqual(weak.status, 412, `${change}: ${weak.text}`)
        const both = { "if-match": `${stale}, ${known}` }
        const taken = yield* send("POST", `${one}/${change}`, both)
        assert.strictEqual(taken.status, 200, `${change}: ${taken.text}`)
        assert.strictEqual(etagOf(taken), `"${taken.json.revision}"`)
        assert.notStrictEqual(etagOf(taken), known)
      }
      for (const text of ["5", '"5" "6"', ",", '"5', "W/5"]) {
        const odd = yield* send("POST", `${one}/pause`, { "if-match": text })
        assert.strictEqual(odd.status, 400, text)
      }
      const gone = yield* send("DELETE", one, { "if-match": stale })
      assert.strictEqual(gone.status, 412)
      assert.strictEqual((yield* send("DELETE", one, any)).status, 200)
      assert.strictEqual((yield* send("DELETE", one, any)).status, 404)
    })
  )

  scenario("are shown again only if they have changed", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const one = `${acme}/billing`
      const tag = etagOf(yield* ask(one, { token }))
      const show = (known: string) => ask(one, { token, headers: { "if-none-match": known } })
      for (const known of [tag, `W/${tag}`, `"1000000", ${tag}`, "*"]) {
        const same = yield* show(known)
        assert.deepStrictEqual([same.status, same.text, etagOf(same)], [304, "", tag], known)
      }
      assert.strictEqual((yield* show('"1000000"')).status, 200)
      assert.strictEqual((yield* show("1000000")).status, 400)
    })
  )

  scenario("are listed page by page, a tenant's alone or all", () =>
    Effect.gen(function* () {
      for (const id of ["a", "b", "c"]) yield* endpoint({ id })
      yield* endpoint({ tenant: "globex", id: "a" })
      const { ask, token: make } = yield* startConsole()
      const [token, operator] = [yield* make(), yield* make({ tenant: "*" })]
      const pages = Effect.fnUntraced(function* (path: string, asking: string) {
        const found: Array<string> = []
        let cursor = ""
        do {
          const { json } = yield* ask(`${path}?limit=2${cursor}`, { token: asking })
          const page = json.endpoints as ReadonlyArray<{ readonly tenant: string; id: string }>
          assert.isAtMost(page.length, 2)
          found.push(...page.map(({ id, tenant }) => `${tenant}/${id}`))
          cursor = json.next === undefined ? "" : `&cursor=${String(json.next)}`
        } while (cursor !== "")
        return found
      })
      assert.deepStrictEqual(yield* pages(acme, token), ["acme/a", "acme/b", "acme/c"])
      assert.deepStrictEqual(yield* pages("/v1/tenants/*/endpoints", operator), [
        "acme/a",
        "acme/b",
        "acme/c",
        "globex/a"
      ])
      const tenants = yield* ask("/v1/tenants", { token: operator })
      assert.deepStrictEqual(tenants.json.tenants, [
        { tenant: "acme", endpoints: 3 },
        { tenant: "globex", endpoints: 1 }
      ])
    })
  )

  scenario("are described, and found by their metadata page by page", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const [token, operator] = [yield* make(), yield* make({ tenant: "*" })]
      const url = "https://example.com/hooks"
      const put = (path: string, metadata: object) =>
        ask(path, { method: "PUT", token: operator, body: { url, description: "Bills", metadata } })
      yield* put("/v1/tenants/globex/endpoints/a", { plan: "gold" })
      for (const [id, metadata] of Object.entries({
        a: { plan: "gold" },
        b: { plan: "free" },
        c: { plan: "gold", region: "eu" },
        d: {},
        e: { plan: "gold", region: "us" }
      }))
        assert.strictEqual((yield* put(`${acme}/${id}`, metadata)).status, 201)
      const idsIn = ({ json }: Answer) =>
        (json.endpoints as ReadonlyArray<{ readonly id: string }>).map(({ id }) => id)
      const found = (query: string) => Effect.map(ask(`${acme}?${query}`, { token }), idsIn)
      const gold = "metadata=plan%3Dgold"
      yield* eventually(found("limit=200"), (ids) => ids.length === 5)
      assert.deepStrictEqual(yield* found(gold), ["a", "c", "e"])
      assert.deepStrictEqual(yield* found(`${gold}&metadata=region%3Deu`), ["c"])
      assert.deepStrictEqual(yield* found("metadata=plan%3D"), [])
      const first = yield* ask(`${acme}?${gold}&limit=2`, { token })
      assert.deepStrictEqual(idsIn(first), ["a", "c"])
      const second = yield* ask(`${acme}?${gold}&limit=2&cursor=${String(first.json.next)}`, {
        token
      })
      assert.deepStrictEqual(idsIn(second), ["e"])
      assert.notProperty(second.json, "next")
      assert.deepStrictEqual(yield* found("id=c"), ["c"])
      assert.deepStrictEqual(yield* found("id=c*&limit=1"), ["c"])
      assert.deepStrictEqual(yield* found(`id=*&${gold}`), ["a", "c", "e"])
      assert.deepStrictEqual(yield* found(`id=b*&${gold}`), [])
      const everywhere = yield* ask("/v1/tenants/*/endpoints?id=a", { token: operator })
      assert.deepStrictEqual(idsIn(everywhere), ["a", "a"])
      yield* ask(`${acme}/b/pause`, { method: "POST", token, body: {} })
      yield* ask(`${acme}/c/disable`, { method: "POST", token, body: { reason: "test" } })
      assert.deepStrictEqual(yield* found("state=paused"), ["b"])
      assert.deepStrictEqual(yield* found("state=paused&state=disabled&limit=1"), ["b"])
      assert.deepStrictEqual(yield* found("state=open"), [])
      assert.deepStrictEqual(yield* found(`state=closed&${gold}`), ["a", "e"])
      assert.deepStrictEqual(yield* found("state=closed&id=d"), ["d"])
      assert.deepStrictEqual(yield* found("state=paused&id=d"), [])
      for (const id of ["c", "d", "e"]) {
        const { endpoint: stored } = yield* getEndpoint("acme", id)
        const { revision } = yield* readHealth("acme", id)
        const generation = id === "e" ? "of an earlier one" : stored.generation
        const open = { ...healthy(generation), circuit: { state: "open", since: 1 } } as const
        yield* writeHealth(`acme.${id}`, open, revision)
      }
      assert.deepStrictEqual(yield* found("state=open"), ["d"])
      assert.deepStrictEqual(yield* found("state=open&state=disabled"), ["c", "d"])
      assert.deepStrictEqual(yield* found("state=half-open"), [])
      for (const id of ["c", "d", "e"]) yield* eraseHealth(`acme.${id}`)
      for (const [id, how] of Object.entries({ b: "resume", c: "enable" }))
        yield* ask(`${acme}/${id}/${how}`, { method: "POST", token, body: {} })
      assert.deepStrictEqual(yield* found("state=closed"), ["a", "b", "c", "d", "e"])
      const bad = yield* ask(`${acme}?id=a.b`, { token })
      assert.strictEqual(bad.status, 400)
      assert.deepStrictEqual(bad.json.errors, [
        {
          field: "id",
          message:
            '"a.b" must be an endpoint\'s id such as billing, or its beginning and a *, such as billing-*'
        }
      ])
      const odd = yield* ask(`${acme}?metadata=plan`, { token })
      assert.strictEqual(odd.status, 400)
      assert.deepStrictEqual(odd.json.errors, [
        { field: "metadata", message: '"plan" must be a name and its value such as customer=42' }
      ])

      const patched = yield* ask(`${acme}/c`, {
        ...{ method: "PATCH", token },
        body: { description: null, metadata: { region: null, owner: "ana" } }
      })
      assert.deepInclude(patched.json, { metadata: { plan: "gold", owner: "ana" } })
      assert.notProperty(patched.json, "description")
      const many = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`k${n}`, ""]))
      for (const metadata of [many, { _x: "" }, { a: "x".repeat(513) }, { a: "\n" }])
        assert.strictEqual((yield* put(`${acme}/f`, metadata)).status, 400)
    })
  )

  scenario("are added without an id, once for each key", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const [token, other] = [yield* make(), yield* make({ tenant: "globex" })]
      const settings = { url: "https://example.com/hooks", metadata: { customer: "42" } }
      const create = (body: object, key?: string) =>
        ask(acme, {
          ...{ method: "POST", token, body },
          headers: key === undefined ? {} : { "idempotency-key": key }
        })
      const one = yield* create(settings)
      assert.strictEqual(one.status, 201, one.text)
      assert.match(String(one.json.id), /^ep_[0-9a-f]{16}$/)
      assert.strictEqual(one.headers.get("location"), `${acme}/${String(one.json.id)}`)
      assert.match(String(one.json.secret), /^whsec_/)
      const another = yield* create(settings)
      assert.notStrictEqual(another.json.id, one.json.id)

      const made = yield* create(settings, "customer-42")
      const again = yield* create(settings, "customer-42")
      assert.deepStrictEqual([made.status, again.status], [201, 201])
      assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
      assert.strictEqual(again.headers.get("etag"), made.headers.get("etag"))
      assert.strictEqual(again.headers.get("location"), made.headers.get("location"))
      const { secret, ...shown } = made.json
      assert.match(String(secret), /^whsec_/)
      assert.deepStrictEqual(again.json, shown)
      const differs = yield* create({ ...settings, maxInFlight: 5 }, "customer-42")
      assert.strictEqual(differs.status, 422, differs.text)
      const path = `${acme}/${String(made.json.id)}`
      assert.strictEqual((yield* ask(path, { token })).json.maxInFlight, 10)
      assert.strictEqual((yield* create(settings, "customer-43")).status, 201)
      const theirs = yield* ask("/v1/tenants/globex/endpoints", {
        ...{ method: "POST", token: other, body: settings },
        headers: { "idempotency-key": "customer-42" }
      })
      assert.strictEqual(theirs.status, 201)
    })
  )

  scenario("say of an event that a disabled endpoint was not sent why", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "off", disabled: { at: Date.now(), by: "test", reason: "gone" } })
      const facts = yield* history
      yield* worker()
      yield* publish("a", "{}", { "Nats-Msg-Id": "acme.x" })
      yield* facts.count("routed", 1)
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const event = yield* ask("/v1/tenants/acme/events/x", { token })
      assert.deepStrictEqual(event.json.deliveries, [
        {
          ...{ delivery: "acme.x.off", endpoint: "off", round: "0" },
          ...{ state: "skipped", attempts: 0, reason: "endpoint-disabled" }
        }
      ])
      const delivery = yield* ask("/v1/tenants/acme/deliveries/acme.x.off", { token })
      assert.strictEqual(delivery.status, 404)
      assert.include(delivery.text, "its endpoint was not sent the event (endpoint-disabled)")
    })
  )

  scenario("show what became of events, to their tenant only", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "e", url })
      const facts = yield* history
      yield* worker()
      yield* publish("a", '{"n":1}', { "Nats-Msg-Id": "acme.x" })
      yield* facts.count("dead-lettered", 1)
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const curious = yield* make({ scopes: ["dead:read", "deliveries:read"] })
      const other = yield* make({ tenant: "globex" })
      const event = yield* ask("/v1/tenants/acme/events/acme.x", { token })
      assert.deepInclude(nth(event.json.deliveries as ReadonlyArray<object>, 0), {
        delivery: "acme.x.e",
        state: "dead-lettered"
      })
      for (const path of ["events/x", "deliveries/x.e"]) {
        const asPublished = yield* ask(`/v1/tenants/acme/${path}`, { token })
        assert.strictEqual(asPublished.status, 200, path)
      }
      const body = yield* ask("/v1/tenants/acme/events/acme.x/body", { token })
      assert.strictEqual(body.text, '{"n":1}')
      assert.strictEqual(
        (yield* ask("/v1/tenants/acme/events/acme.x/body", { token: curious })).status,
        403
      )
      const delivery = yield* ask("/v1/tenants/acme/deliveries/acme.x.e", { token })
      assert.include(delivery.text, '"status":400')

      const listed = yield* ask("/v1/tenants/acme/dead-letters?status=4xx", { token })
      const [letter] = listed.json.deadLetters as ReadonlyArray<{ readonly id: number }>
      const path = (tenant: string) => `/v1/tenants/${tenant}/dead-letters/${letter?.id}`
      assert.deepInclude((yield* ask(path("acme"), { token })).json, { body: '{"n":1}' })
      assert.notProperty((yield* ask(path("acme"), { token: curious })).json, "body")
      assert.strictEqual((yield* ask(path("globex"), { token: other })).status, 404)
      const theirs = yield* ask(path("globex"), { method: "DELETE", token: other })
      assert.strictEqual(theirs.status, 404)
      assert.lengthOf(yield* deadLetters, 1)
      const discarded = yield* ask(path("acme"), { method: "DELETE", token })
      assert.deepInclude(discarded.json, { discarded: true })
      yield* eventually(deadLetters, ({ length }) => length === 0)
      const totals = yield* ask("/v1/tenants/acme/totals?by=day", { token })
      assert.deepInclude(nth(totals.json.totals as ReadonlyArray<object>, 0), {
        tenant: "acme",
        deadLettered: 1
      })
    })
  )

  scenario("are tried and tested when somebody wants it", () =>
    Effect.gen(function* () {
      const { requests, url } = yield* receiver()
      yield* endpoint({ id: "e", url })
      const { delivering } = yield* worker()
      yield* delivering
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const post = (path: string) => ask(`${acme}/e/${path}`, { method: "POST", token })
      const tested = yield* post("test")
      assert.deepInclude(tested.json, { type: "petrel.test", status: 200 })
      assert.strictEqual(requests.length, 1)
      assert.deepInclude((yield* post("retry-now")).json, { moved: 0, left: 0 })
      const diagnosis = yield* ask(`${acme}/e/diagnosis`, { token })
      assert.isArray(diagnosis.json.checks)
      assert.strictEqual((yield* ask("/v1/tenants/acme/deliveries", { token })).status, 503)
      // Nothing is wrong with the request: the endpoint has to change first.
      for (const [state, says] of [
        ["pause", "acme/e is paused: resume it to send its deliveries"],
        ["disable", "acme/e is disabled, so nothing waits for it: enable it first"]
      ] as const) {
        yield* post(state)
        const { json, status } = yield* post("retry-now")
        assert.strictEqual(status, 409)
        assert.strictEqual(json.detail, says)
      }
    })
  )
})
