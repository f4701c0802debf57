import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { run } from "../cli/in-process.ts"
import { startConsole } from "../kit/console.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const endpoints = "/v1/tenants/acme/endpoints"
const app = "https://app.example.com"

describe.concurrent("pages in a browser", () => {
  scenario("may ask from the origins that are named, without credentials", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole({ corsOrigins: [app] })
      const token = yield* make()
      const preflight = (origin: string, path = `${endpoints}/billing`) =>
        ask(path, {
          method: "OPTIONS",
          headers: { origin, "access-control-request-method": "PATCH" }
        })
      const allowed = yield* preflight(app)
      assert.strictEqual(allowed.status, 204, allowed.text)
      assert.strictEqual(allowed.headers.get("access-control-allow-origin"), app)
      assert.include(allowed.headers.get("access-control-allow-methods") ?? "", "PATCH")
      assert.include(allowed.headers.get("access-control-allow-headers") ?? "", "if-match")
      for (const answer of [yield* preflight("https://evil.example"), yield* preflight("null")]) {
        assert.strictEqual(answer.status, 405)
        assert.isNull(answer.headers.get("access-control-allow-origin"))
      }
      assert.strictEqual((yield* preflight(app, "/v1/nothing")).status, 404)

      const read = (origin: string, asking?: string) =>
        ask(endpoints, { token: asking, headers: { origin } })
      const shown = yield* read(app, token)
      assert.strictEqual(shown.status, 200, shown.text)
      assert.strictEqual(shown.headers.get("access-control-allow-origin"), app)
      assert.strictEqual(shown.headers.get("vary"), "Origin")
      const exposed = shown.headers.get("access-control-expose-headers") ?? ""
      for (const name of ["etag", "location", "ratelimit", "ratelimit-policy", "retry-after"])
        assert.include(exposed, name)
      // What is refused is to be read, too.
      const refused = yield* read(app)
      assert.strictEqual(refused.status, 401)
      assert.strictEqual(refused.headers.get("access-control-allow-origin"), app)
      const other = yield* read("https://evil.example", token)
      assert.isNull(other.headers.get("access-control-allow-origin"))
      for (const { headers } of [allowed, shown, refused])
        assert.isNull(headers.get("access-control-allow-credentials"))
    })
  )

  scenario("are told nothing where no origin is named", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const headers = { origin: app, "access-control-request-method": "GET" }
      const preflight = yield* ask(endpoints, { method: "OPTIONS", headers })
      const shown = yield* ask(endpoints, { token: yield* make(), headers })
      assert.deepStrictEqual([preflight.status, shown.status], [405, 200])
      for (const answer of [preflight, shown])
        for (const name of answer.headers.keys()) assert.notMatch(name, /^access-control|^vary$/)
    })
  )

  scenario("have origins that the console can read, or it says what is wrong", (_, server) =>
    Effect.gen(function* () {
      for (const origin of ["*", "app.example.com", "https://app.example.com/app", "null"]) {
        const { code, err } = yield* run("console", "--cors-origin", origin, "--nats", server.url)
        assert.strictEqual(code, 2, origin)
        assert.strictEqual(err.length, 1, err.join("\n"))
        assert.include(err[0], `--cors-origin ${origin} is not an origin`)
      }
    })
  )
})

describe.concurrent("the rate of a token", () => {
  scenario("is told with each answer, and when to ask again", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const usual = yield* ask(endpoints, { token: yield* make() })
      assert.strictEqual(usual.headers.get("ratelimit-policy"), '"token";q=1000;w=1')
      assert.match(usual.headers.get("ratelimit") ?? "", /^"token";r=9\d\d;t=1$/)
      const nobody = yield* ask(endpoints)
      assert.isNull(nobody.headers.get("ratelimit"))

      const slow = yield* make({ rate: 1 })
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, () => ask(endpoints, { token: slow })),
        { concurrency: "unbounded" }
      )
      for (const { headers } of answers) {
        assert.strictEqual(headers.get("ratelimit-policy"), '"token";q=1;w=1')
        assert.strictEqual(headers.get("ratelimit"), '"token";r=0;t=1')
      }
      const refused = answers.filter(({ status }) => status === 429)
      assert.isNotEmpty(refused)
      for (const { headers } of refused) assert.strictEqual(headers.get("retry-after"), "1")
    })
  )
})
