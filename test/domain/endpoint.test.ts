import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { Endpoint } from "../../src/domain/endpoint.ts"
import { RetryPolicy } from "../../src/domain/retry-policy.ts"
import { quickRetry, secret } from "../kit/engine.ts"

const json = {
  v: 1,
  tenant: "acme",
  id: "hook",
  generation: "g",
  url: "https://example.com/hooks",
  types: [">"],
  sign: "standard",
  secrets: [{ value: secret, createdAt: 0 }],
  retry: "default",
  maxInFlight: 10,
  redirects: 3,
  headers: {},
  createdAt: 0,
  updatedAt: 0
}
const problem = (changes: object): string => {
  const decoded = Schema.decodeUnknownResult(Endpoint)({ ...json, ...changes })
  return Result.isFailure(decoded) ? decoded.failure.message : ""
}

describe("an endpoint's configuration", () => {
  it("is what the bucket holds", () => {
    assert.strictEqual(problem({}), "")
  })

  it("refuses header names that are not its own to set, instead of leaving them out", () => {
    assert.include(problem({ headers: { host: "x" } }), "sets itself")
    assert.include(problem({ headers: { "Webhook-Id": "x" } }), "sets itself")
    assert.include(problem({ headers: { "x-github-event": "push" } }), "sets itself")
    assert.include(problem({ headers: { "a b": "x" } }), "valid header name")
    assert.include(problem({ headers: { "x-key": "line\nbreak" } }), "valid header value")
    assert.strictEqual(problem({ headers: { "x-key": "value" } }), "")
  })

  it("refuses names of headers that HTTP or Petrel needs, and event types that are none", () => {
    for (const name of ["host", "Content-Type", "traceparent", "petrel-attempt"])
      assert.include(problem({ headerNames: { id: name } }), "sets itself", name)
    assert.include(problem({ headerNames: { type: "a b" } }), "valid header name")
    assert.strictEqual(problem({ headerNames: { id: "x-id", type: "webhook-topic" } }), "")
    assert.include(problem({ retryFor: { "a..b": "stripe" } }), "must be event types")
    assert.include(problem({ retryFor: { a: { jitter: "none" } } }), "backoff")
    assert.strictEqual(problem({ retryFor: { a: "stripe", "b.>": quickRetry() } }), "")
  })

  it("refuses URLs that are none, other schemes, and passwords in them", () => {
    for (const url of ["", "example.com", "ftp://example.com", "https://u:p@example.com"])
      assert.include(problem({ url }), "must")
  })

  it("may tell of a circuit, a rate and a pause", () => {
    assert.strictEqual(
      problem({
        circuit: { failures: 3, coolDown: "1 second", rate: "none" },
        rate: { perSecond: 0.5, burst: 1 },
        paused: { at: 0, by: "cli" }
      }),
      ""
    )
  })

  it("refuses a circuit or a rate that no endpoint can have", () => {
    assert.include(problem({ circuit: { failures: 0 } }), "between 1 and 10000")
    assert.include(problem({ circuit: { onOpen: "drop" } }), "onOpen")
    assert.include(
      problem({ circuit: { coolDown: "1 hour", maxCoolDown: "1 second" } }),
      "not longer than its maxCoolDown"
    )
    assert.include(problem({ rate: { perSecond: 0, burst: 1 } }), "between")
    assert.include(problem({ rate: { perSecond: 20, burst: 0 } }), "between")
  })

  it("wants at most 200 event types", () => {
    const types = (count: number) => Array.from({ length: count }, (_, n) => `invoice.${n}`)
    assert.strictEqual(problem({ types: types(200) }), "")
    assert.include(problem({ types: types(201) }), "must be at most 200 event types, not 201")
    assert.include(problem({ types: [] }), "types")
  })

  it("refuses names that are no subject token", () => {
    for (const id of ["", "_", "a.b", "a b", "ü", "x".repeat(65)])
      assert.notEqual(problem({ id }), "")
  })
})

describe("a retry policy", () => {
  it("refuses overrides of what is neither a status nor a class", () => {
    const decode = Schema.decodeUnknownResult(RetryPolicy)
    assert.isTrue(
      Result.isSuccess(decode(quickRetry({ statuses: { "404": "fail", "5xx": "retry" } })))
    )
    assert.isTrue(Result.isFailure(decode(quickRetry({ statuses: { "40x": "fail" } }))))
  })
})
