import { assert, describe, it } from "@effect/vitest"
import { Duration, Result, Schema } from "effect"
import { ErrorClass, type ErrorVerdict, Verdict } from "../../src/domain/outcome.ts"
import { RetryPolicy } from "../../src/domain/retry-policy.ts"
import { classify, defaultErrors } from "../../src/policy/classify.ts"

const verdictOf = (status: number, statuses: Record<string, Verdict> = {}) =>
  classify({ status }, { statuses }).verdict

describe("without overrides", () => {
  it("any 2xx is a delivery", () => {
    for (const status of [200, 201, 202, 204, 206, 226, 299])
      assert.strictEqual(verdictOf(status), "delivered", `${status}`)
  })

  it("what may pass by itself is retried", () => {
    for (const status of [404, 408, 425, 429, 500, 501, 502, 503, 504, 520, 599])
      assert.strictEqual(verdictOf(status), "retry", `${status}`)
  })

  it("an answer that is no final one, or none that HTTP knows, is retried", () => {
    for (const status of [100, 101, 103, 600, 999])
      assert.strictEqual(verdictOf(status), "retry", `${status}`)
  })

  it("other 4xx fail, as does a redirect that nobody followed", () => {
    for (const status of [400, 401, 402, 403, 405, 406, 409, 410, 411, 413, 415, 422, 451, 499])
      assert.strictEqual(verdictOf(status), "fail", `${status}`)
    for (const status of [300, 301, 302, 303, 304, 307, 308])
      assert.strictEqual(verdictOf(status), "fail", `${status}`)
  })

  it("every error is retried, except a redirect that is not followed", () => {
    for (const errorClass of ErrorClass.literals)
      assert.deepStrictEqual(
        classify({ error: { class: errorClass } }),
        { verdict: errorClass === "redirect" ? "fail" : "retry", gone: false },
        errorClass
      )
    assert.sameMembers(Object.keys(defaultErrors), [...ErrorClass.literals])
  })

  it("an answer that broke off is an error, whatever its status was", () => {
    assert.strictEqual(classify({ status: 200, error: { class: "timeout" } }).verdict, "retry")
    assert.deepStrictEqual(classify({ status: 410, error: { class: "reset" } }), {
      verdict: "retry",
      gone: false
    })
  })
})

describe("overrides", () => {
  it("an exact status beats a class, and a class beats the table", () => {
    const statuses: Record<string, Verdict> = { "404": "delivered", "4xx": "retry", "5xx": "fail" }
    assert.strictEqual(verdictOf(404, statuses), "delivered")
    assert.strictEqual(verdictOf(422, statuses), "retry")
    assert.strictEqual(verdictOf(503, statuses), "fail")
    assert.strictEqual(verdictOf(429, { "4xx": "fail" }), "fail")
    assert.strictEqual(verdictOf(204, statuses), "delivered")
    assert.strictEqual(verdictOf(302, statuses), "fail")
  })

  it("a redirect that is not followed can be overridden by its status", () => {
    const redirect = { status: 302, error: { class: "redirect" } } as const
    assert.strictEqual(classify(redirect).verdict, "fail")
    assert.strictEqual(
      classify(redirect, { statuses: { "302": "delivered" } }).verdict,
      "delivered"
    )
    assert.strictEqual(classify(redirect, { statuses: { "3xx": "retry" } }).verdict, "retry")
  })

  it.prop(
    "an exact override always decides",
    [Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 599 })), Verdict, Verdict],
    ([status, exact, family]) => {
      const statuses = { [status]: exact, [`${Math.floor(status / 100)}xx`]: family }
      assert.strictEqual(verdictOf(status, statuses), exact)
    }
  )
})

describe("gone", () => {
  it("is a 410, and nothing else", () => {
    assert.isTrue(classify({ status: 410 }).gone)
    assert.isFalse(classify({ status: 404 }).gone)
    assert.isFalse(classify({ status: 403 }, { statuses: { "403": "fail" } }).gone)
  })

  it("still holds where an override says that a 410 fails", () => {
    assert.isTrue(classify({ status: 410 }, { statuses: { "410": "fail" } }).gone)
    assert.isTrue(classify({ status: 410 }, { statuses: { "4xx": "fail" } }).gone)
  })

  it("does not hold where an override makes something else of a 410", () => {
    assert.isFalse(classify({ status: 410 }, { statuses: { "410": "retry" } }).gone)
    assert.isFalse(classify({ status: 410 }, { statuses: { "410": "delivered" } }).gone)
    assert.isFalse(classify({ status: 410 }, { statuses: { "4xx": "retry" } }).gone)
  })
})

describe("a rule for a status", () => {
  const rule = { retry: { attempts: 5, window: Duration.hours(6) }, alert: 3 } as const

  it("retries, and is told with the policy's name for the status", () => {
    const ruled = (status: number, statuses: NonNullable<RetryPolicy["statuses"]>) =>
      classify({ status }, { statuses }).rule
    assert.deepStrictEqual(classify({ status: 404 }, { statuses: { "404": rule } }), {
      ...{ verdict: "retry", gone: false, rule: { status: "404", alert: 3 } }
    })
    assert.deepStrictEqual(ruled(418, { "4xx": rule }), { status: "4xx", alert: 3 })
    assert.deepStrictEqual(ruled(404, { "4xx": rule, "404": rule })?.status, "404")
    assert.isUndefined(ruled(404, { "4xx": rule, "404": "retry" }))
    assert.isUndefined(ruled(503, { "4xx": rule }))
  })

  it("of a 410 leaves the endpoint enabled, and holds for no error", () => {
    assert.isFalse(classify({ status: 410 }, { statuses: { "410": rule } }).gone)
    const broken = { status: 404, error: { class: "reset" } } as const
    assert.notProperty(classify(broken, { statuses: { "404": rule } }), "rule")
  })
})

describe("overrides of errors", () => {
  const verdictOfError = (errorClass: ErrorClass, errors: Record<string, ErrorVerdict>) =>
    classify({ error: { class: errorClass } }, { errors }).verdict

  it("hold for a class", () => {
    for (const errorClass of ErrorClass.literals) {
      assert.strictEqual(verdictOfError(errorClass, { [errorClass]: "fail" }), "fail", errorClass)
      assert.strictEqual(verdictOfError(errorClass, { [errorClass]: "retry" }), "retry", errorClass)
    }
  })

  it("hold for a family, where its member is not named", () => {
    const errors = { connection: "fail", tls: "fail", refused: "retry" } as const
    for (const errorClass of [
      "reset",
      "unreachable",
      "connection",
      "certificate",
      "handshake"
    ] as const)
      assert.strictEqual(verdictOfError(errorClass, errors), "fail", errorClass)
    for (const errorClass of ["refused", "timeout", "connect-timeout", "dns", "protocol"] as const)
      assert.strictEqual(verdictOfError(errorClass, errors), "retry", errorClass)
  })

  it("of a redirect count more than those of its status; other errors leave the status alone", () => {
    const redirect = { status: 302, error: { class: "redirect" } } as const
    const statuses = { "302": "delivered" } as const
    assert.strictEqual(
      classify(redirect, { statuses, errors: { redirect: "retry" } }).verdict,
      "retry"
    )
    assert.strictEqual(
      classify(redirect, { statuses, errors: { tls: "fail" } }).verdict,
      "delivered"
    )
    assert.deepStrictEqual(classify({ status: 410 }, { errors: { connection: "retry" } }), {
      verdict: "fail",
      gone: true
    })
  })

  it("are by error class or family, and retry or fail", () => {
    const read = (errors: Record<string, string>) =>
      Schema.decodeUnknownResult(RetryPolicy)({
        backoff: { kind: "fixed", delay: "1 minute" },
        ...{ jitter: "none", maxAttempts: 3, window: "1 hour", errors }
      })
    for (const key of [...ErrorClass.literals, "tls"])
      assert.isTrue(Result.isSuccess(read({ [key]: "fail" })), key)
    for (const [key, verdict] of [
      ["certficate", "fail"],
      ["5xx", "fail"],
      ["timeout", "delivered"]
    ] as const)
      assert.isTrue(Result.isFailure(read({ [key]: verdict })), key)
  })
})
