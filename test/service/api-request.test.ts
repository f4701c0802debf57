import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { listedOperations } from "../../src/api/groups.ts"
import { apiRequest, tenantIn } from "../../src/service/api-request.ts"
import { serviceOperations } from "../../src/service/operations.ts"
import { operations, resolved } from "../kit/api-operations.ts"

const ask = (
  id: string,
  message: unknown = {},
  { headers = {}, tenant = "acme" }: { headers?: Record<string, string>; tenant?: string } = {}
) => {
  const operation = serviceOperations.find((one) => one.id === id)
  if (operation === undefined) throw new Error(`there is no ${id}`)
  const body = Buffer.from(typeof message === "string" ? message : JSON.stringify(message))
  return apiRequest(operation, tenant, { body, header: (name) => headers[name] })
}
const asked = (...args: Parameters<typeof ask>) => {
  const { body, ...request } = Result.getOrThrow(ask(...args))
  return { ...request, body: body === undefined ? undefined : Buffer.from(body).toString() }
}
const problem = (...args: Parameters<typeof ask>) => Result.getOrThrow(Result.flip(ask(...args)))

describe("a request over NATS", () => {
  it("is one for each operation of the API that is not left out with a reason", () => {
    const instead = listedOperations.flatMap(({ id, operation: { insteadOverNats } }) =>
      insteadOverNats === undefined ? [] : [id]
    )
    assert.sameMembers(instead, [
      ...["events.publishRaw", "deliveries.live", "settings.changeTenant", "health.health"]
    ])
    assert.sameMembers(
      [...serviceOperations.map(({ id }) => id), ...instead],
      operations.map(({ id }) => id)
    )
  })

  it("has no parameter and field of one name", () => {
    for (const { body, id, parameters } of operations) {
      const kinds = body === undefined ? [] : (resolved(body).anyOf ?? [body])
      const fields = kinds.flatMap((kind) => Object.keys(resolved(kind).properties ?? {}))
      const names = parameters.flatMap(({ in: place, name }) => (place === "header" ? [] : [name]))
      assert.isEmpty(
        names.filter((name) => fields.includes(name)),
        id
      )
    }
  })

  it("puts parameters where the API has them", () => {
    assert.deepStrictEqual(asked("endpoints.get", { id: "billing" }), {
      ...{ method: "GET", url: "/v1/tenants/acme/endpoints/billing", headers: {} },
      body: undefined
    })
    assert.strictEqual(
      asked("log.list", { endpoint: "billing", limit: 10, state: "waiting" }).url,
      "/v1/tenants/acme/deliveries?endpoint=billing&limit=10&state=waiting"
    )
    assert.strictEqual(
      asked("log.attempts", { status: ["503", "4xx"], endpoint: [] }).url,
      "/v1/tenants/acme/attempts?status=503&status=4xx"
    )
    assert.strictEqual(asked("system.status", "").url, "/v1/status")
    assert.strictEqual(
      asked("deadLetters.list", {}, { tenant: "*" }).url,
      "/v1/tenants/*/dead-letters"
    )
    assert.strictEqual(
      asked("deliveries.event", { event: "a/b?c" }).url,
      "/v1/tenants/acme/events/a%2Fb%3Fc"
    )
  })

  it("has all other fields in the body, with numbers as they are written", () => {
    const text = '{"id":"billing","maxInFlight":1.0,"big":12345678901234567890}'
    const headers = { "if-match": '"7"', authorization: "Bearer x" }
    const { body, headers: sent, method } = asked("endpoints.patch", text, { headers })
    assert.strictEqual(body, '{"maxInFlight":1.0,"big":12345678901234567890}')
    assert.strictEqual(method, "PATCH")
    assert.deepStrictEqual(sent, {
      ...{ "content-type": "application/json", "content-length": "46" },
      "if-match": '"7"'
    })
    assert.strictEqual(asked("attempts.retryNow", { id: "a" }).body, "{}")
  })

  it("is the body as a whole where that is a list", () => {
    assert.strictEqual(
      asked("events.publish", '[{"type":"a","data":1.0}]').body,
      '[{"type":"a","data":1.0}]'
    )
    assert.match(problem("endpoints.put", "[]").detail, /^id is missing$/)
  })

  it("is refused where a header is none of HTTP", () => {
    const headers = { "if-match": "\u4e2d" }
    assert.match(
      problem("endpoints.patch", { id: "a" }, { headers }).detail,
      /if-match must be Latin/
    )
  })

  it("may name a tenant where the path has none", () => {
    assert.deepStrictEqual(
      asked("jobs.audit", { tenant: "globex" }, { tenant: "*" }).body,
      '{"tenant":"globex"}'
    )
  })

  it("is of the tenant in the subject", () => {
    assert.deepStrictEqual(["acme", "_", "*"].map(tenantIn), ["acme", "*", "_"])
  })

  for (const [what, id, message, detail] of [
    ["no JSON", "endpoints.get", "hello", /^the message must be a JSON object/],
    ["no object", "endpoints.get", "[1]", /^the message must be a JSON object/],
    ["a missing parameter", "endpoints.get", "{}", /^id is missing$/],
    ["a step of a path", "deliveries.delivery", '{"delivery":".."}', /^delivery must not be \.\.$/],
    ["half a letter", "endpoints.get", '{"id":"\\ud800"}', /^id must be text in Unicode/],
    ["a long parameter", "log.list", { endpoint: "x".repeat(20_000) }, /take more than 16 KiB/],
    [
      "more fields than anything has",
      "endpoints.put",
      Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`x${at}`, 1])),
      /more than 10000 fields/
    ],
    ["a parameter that is no text", "endpoints.get", '{"id":{}}', /^id is missing$/],
    [
      "an unknown field",
      "endpoints.get",
      '{"id":"a","body":1}',
      /^body is not a field of endpoints.get: it has id$/
    ],
    [
      "a misspelt one",
      "log.list",
      '{"limmit":1}',
      /^limmit is not a field of log.list: did you mean limit\?$/
    ],
    ["a tenant", "log.list", '{"tenant":"globex"}', /^tenant is not a field: the subject names it$/]
  ] as const)
    it(`is refused with ${what}`, () => {
      const { detail: said, status } = problem(id, message)
      assert.strictEqual(status, 400)
      assert.match(said, detail)
    })
})
