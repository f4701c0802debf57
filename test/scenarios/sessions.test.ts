import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { listedOperations } from "../../src/api/groups.ts"
import { operatorNamed } from "../../src/operations/caller.ts"
import { setTenant } from "../../src/operations/tenants/tenant-settings.ts"
import { makeOperatorLink, makePortalLink } from "../../src/operations/tokens/sessions.ts"
import { LiveTokens, readToken } from "../../src/operations/tokens/token-store.ts"
import { revokeTestToken, startConsole, type TestConsole } from "../kit/console.ts"
import { endpoint, eventually, history, publish, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const same = { "sec-fetch-site": "same-origin" }

/** Returns the secret behind the # of a link. */
const secretOf = ({ path }: { readonly path: string }): string => path.slice(path.indexOf("#") + 1)

const operatorLink = Effect.provide(
  makeOperatorLink("test", operatorNamed("test")),
  LiveTokens.layer
)
const portalLink = (tenant: string, id?: string) =>
  Effect.provide(
    makePortalLink(tenant, id === undefined ? {} : { endpoint: id }, operatorNamed("test")),
    LiveTokens.layer
  )

const open = ({ ask }: TestConsole, token: string, headers: Record<string, string> = same) =>
  ask("/session", { method: "POST", body: { token }, headers })

/** Opens a session, and returns what a browser would send with each request. */
const opened = Effect.fnUntraced(function* (console: TestConsole, token: string) {
  const answer = yield* eventually(open(console, token), ({ status }) => status !== 401)
  assert.strictEqual(answer.status, 204, answer.text)
  const cookie = answer.headers.get("set-cookie") ?? ""
  assert.match(cookie, /^petrel-\d+=ptl_[^;]+; Path=\/; HttpOnly; SameSite=Strict$/)
  return { ...same, cookie: cookie.split(";")[0] ?? "" }
})

describe.concurrent("a session of a browser", () => {
  scenario("is opened once by a link, does what its link says, and ends", () =>
    Effect.gen(function* () {
      const console = yield* startConsole()
      const { ask } = console
      const link = yield* operatorLink
      const own = yield* opened(console, secretOf(link))
      // A console of an earlier version does not take it for a token of all.
      assert.deepInclude(yield* readToken(link.id), { v: 2, use: "session" })
      const shown = yield* ask("/session", { headers: own })
      assert.deepInclude(shown.json, { id: link.id, tenant: "*" })
      assert.strictEqual((yield* ask("/v1/tenants/*/endpoints", { headers: own })).status, 200)
      const again = yield* open(console, secretOf(link))
      assert.strictEqual(again.status, 401)
      assert.include(String(again.json.detail), "was used")
      assert.strictEqual((yield* ask("/session", { method: "DELETE", headers: own })).status, 204)
      yield* eventually(ask("/session", { headers: own }), ({ status }) => status === 401)
    })
  )

  scenario(
    "is not opened where a browser does not say which site asks: nobody would believe it",
    () =>
      Effect.gen(function* () {
        const console = yield* startConsole()
        const secret = secretOf(yield* operatorLink)
        // So does a browser over plain HTTP under another name than that of loopback.
        const plain = yield* open(console, secret, { origin: "http://petrel.test" })
        assert.strictEqual(plain.status, 403)
        assert.include(String(plain.json.detail), "open these pages over TLS")
        // The link is not used up.
        yield* opened(console, secret)
      })
  )

  scenario("of one link is one, whoever is first", () =>
    Effect.gen(function* () {
      const console = yield* startConsole()
      const secret = secretOf(yield* operatorLink)
      yield* eventually(
        Effect.all(
          Array.from({ length: 8 }, () => open(console, secret)),
          { concurrency: 8 }
        ),
        (answers) => answers.filter(({ status }) => status === 204).length === 1
      )
      assert.strictEqual((yield* open(console, secret)).status, 401)
    })
  )

  scenario("is not used by pages of other sites, and its secrets stand for nothing else", () =>
    Effect.gen(function* () {
      const console = yield* startConsole()
      const { ask } = console
      const link = yield* operatorLink
      const secret = secretOf(link)
      const elsewhere = yield* open(console, secret, { "sec-fetch-site": "cross-site" })
      assert.strictEqual(elsewhere.status, 403)
      // A link is no token of the API.
      yield* eventually(ask("/v1/tenants/*/endpoints", { token: secret }), ({ text }) =>
        text.includes("this is a link")
      )
      const own = yield* opened(console, secret)
      const session = own.cookie.slice(own.cookie.indexOf("=") + 1)
      assert.strictEqual((yield* ask("/v1/status", { token: session })).status, 401)
      for (const site of ["cross-site", "same-site", "none"]) {
        const headers = { ...own, "sec-fetch-site": site }
        const body = { disabled: true }
        const answer = yield* ask("/v1/audits", { method: "POST", headers, body })
        assert.strictEqual(answer.status, 401, site)
      }
      const silent = { cookie: own.cookie }
      assert.strictEqual((yield* ask("/v1/status", { headers: silent })).status, 401)
      assert.strictEqual((yield* ask("/metrics", { token: secret })).status, 200)
    })
  )

  scenario("outlives its console, and not the token that it was opened with", () =>
    Effect.gen(function* () {
      const first = yield* startConsole()
      const token = yield* first.token({ scopes: ["endpoints:read"] })
      const own = yield* opened(first, token)
      const second = yield* startConsole()
      // Its cookie has the port of the first one in its name.
      const port = new URL(second.url).port
      const cookie = own.cookie.replace(/^petrel-\d+/, `petrel-${port}`)
      const path = "/v1/tenants/acme/endpoints"
      yield* eventually(
        second.ask(path, { headers: { ...own, cookie } }),
        ({ status }) => status === 200
      )
      const other = yield* second.ask("/v1/tenants/globex/endpoints", {
        headers: { ...own, cookie }
      })
      assert.strictEqual(other.status, 403)
      yield* revokeTestToken(token.split("_")[1] ?? "")
      yield* eventually(
        second.ask(path, { headers: { ...own, cookie } }),
        ({ status }) => status === 401
      )
    })
  )
})

describe("sessions of a tenant", () => {
  scenario("are as many as its tokens may be, and take none of their places", () =>
    Effect.gen(function* () {
      const console = yield* startConsole()
      const token = yield* console.token({ scopes: ["endpoints:read"] })
      yield* setTenant("acme", { maxTokens: 2 }, "test")
      yield* opened(console, token)
      yield* opened(console, token)
      const refused = yield* open(console, token)
      assert.strictEqual(refused.status, 403)
      assert.include(
        String(refused.json.detail),
        "acme has 2 links and sessions of browsers, which is the maximum"
      )
      yield* console.token({ scopes: ["endpoints:read"] })
      const more = yield* Effect.exit(console.token({ scopes: ["endpoints:read"] }))
      assert.strictEqual(more._tag, "Failure")
    })
  )
})

/** What varies in paths, as of an endpoint that is somebody else's. */
const others: Readonly<Record<string, string>> = {
  tenant: "acme",
  id: "other",
  delivery: "acme.one.other",
  event: "acme.one",
  number: "1",
  type: "paid",
  token: "0123456789abcdef",
  job: "job-1"
}

describe("the portal of one endpoint", () => {
  scenario("shows and changes that one, and nothing else by any operation", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({})
      yield* endpoint({ id: "billing", url: hook.url, types: ["paid"] })
      yield* endpoint({ id: "other", url: `${hook.url}/somebody-elses`, types: ["paid"] })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", '{"n":1}', { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("delivered", 2)
      const console = yield* startConsole()
      const { ask } = console
      const headers = yield* opened(console, secretOf(yield* portalLink("acme", "billing")))
      const own = (path: string, method = "GET", body?: unknown) =>
        ask(`/v1/tenants/acme/${path}`, {
          method,
          headers,
          ...(body === undefined ? {} : { body })
        })
      assert.strictEqual((yield* own("endpoints/billing")).status, 200)
      assert.strictEqual((yield* own("deliveries/acme.one.billing")).status, 200)
      assert.strictEqual((yield* own("deliveries/acme.one.billing/body")).text, '{"n":1}')
      assert.strictEqual((yield* own("endpoints/billing/pause", "POST", {})).status, 200)
      // A redelivery of all would be one of others, too.
      assert.strictEqual((yield* own("redeliveries", "POST", { all: true })).status, 403)
      assert.isAbove(listedOperations.length, 60)
      for (const { id, operation, path } of listedOperations) {
        if (operation.scope === undefined) continue
        const asked = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => others[name] ?? "none")
        const { method } = operation
        for (const [query, body] of [
          ["", {}],
          ["?endpoint=other", { endpoint: "other" }]
        ] as const) {
          const answer = yield* ask(`${asked}${query}`, {
            method,
            headers,
            ...(method === "GET" || method === "DELETE" ? {} : { body })
          })
          assert.isAtLeast(answer.status, 400, `${id} ${query}: ${answer.text}`)
          assert.isBelow(answer.status, 500, `${id} ${query}: ${answer.text}`)
          assert.notInclude(answer.text, "somebody-elses", id)
        }
      }
      assert.strictEqual((yield* own("endpoints/billing")).status, 200)
    })
  )
})
