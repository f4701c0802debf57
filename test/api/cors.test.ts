import { assert, describe, it } from "@effect/vitest"
import { CrossOrigin, readOrigin } from "../../src/api/cors.ts"

const app = "https://app.example.com"

describe("readOrigin", () => {
  it.each([
    [app, app],
    ["HTTPS://App.Example.com/", app],
    ["https://app.example.com:443", app],
    ["http://localhost:3000", "http://localhost:3000"],
    ["https://app.example.com/path", undefined],
    ["https://app.example.com/?a", undefined],
    ["https://me@app.example.com", undefined],
    ["https://*.example.com", undefined],
    ["*", undefined],
    ["null", undefined],
    ["app.example.com", undefined],
    ["ftp://app.example.com", undefined],
    ["", undefined]
  ])("makes of %j %j", (text, origin) => {
    assert.strictEqual(readOrigin(text), origin)
  })
})

describe("CrossOrigin", () => {
  const cors = new CrossOrigin([app])
  const preflight = { origin: app, "access-control-request-method": "PUT" }

  it("says nothing where no origin is named", () => {
    const none = new CrossOrigin()
    assert.deepStrictEqual(none.headersFor({ origin: app }), {})
    const asked = { method: "OPTIONS", headers: preflight }
    assert.isUndefined(none.preflight(asked, () => ["GET"]))
  })

  it("lets pages of a named origin read answers, and no others", () => {
    assert.deepStrictEqual(cors.headersFor({}), { vary: "Origin" })
    assert.deepStrictEqual(cors.headersFor({ origin: `${app}.evil.example` }), { vary: "Origin" })
    const headers = cors.headersFor({ origin: app })
    assert.strictEqual(headers["access-control-allow-origin"], app)
    assert.match(headers["access-control-expose-headers"] ?? "", /etag.*location.*ratelimit/)
    assert.notProperty(headers, "access-control-allow-credentials")
  })

  it("answers a preflight of a named origin for a path that there is", () => {
    const answer = cors.preflight({ method: "OPTIONS", headers: preflight }, () => ["GET", "PUT"])
    assert.strictEqual(answer?.status, 204)
    assert.strictEqual(answer?.headers["access-control-allow-methods"], "GET, PUT")
    assert.include(answer?.headers["access-control-allow-headers"], "authorization")
    assert.isUndefined(cors.preflight({ method: "OPTIONS", headers: preflight }, () => []))
    assert.isUndefined(cors.preflight({ method: "PUT", headers: preflight }, () => ["PUT"]))
    const other = { ...preflight, origin: "https://evil.example" }
    assert.isUndefined(cors.preflight({ method: "OPTIONS", headers: other }, () => ["PUT"]))
  })
})
