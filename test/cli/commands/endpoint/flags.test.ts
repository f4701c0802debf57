import { assert, describe, it } from "@effect/vitest"
import { Duration, Result } from "effect"
import type { GivenSettings } from "../../../../src/cli/commands/endpoint/flags.ts"
import { readSettings } from "../../../../src/cli/commands/endpoint/flags.ts"

const fieldsOf = (flags: GivenSettings) => Result.getOrThrow(readSettings(flags))
const problemsOf = (flags: GivenSettings) => Result.getOrThrow(Result.flip(readSettings(flags)))
const headers = (...header: ReadonlyArray<string>) => ({ header, headerLines: [] })

const policy = {
  backoff: { kind: "exponential", base: "1 minute", factor: 2, cap: "1 hour" },
  jitter: "equal",
  maxAttempts: 16,
  window: "72 hours"
}

describe("what is said of an endpoint on the command line", () => {
  it("is read flag by flag", () => {
    const fields = fieldsOf({
      url: "https://example.com/hooks",
      types: "invoice.>, *.created,invoice.>",
      sign: "stripe",
      maxInFlight: "25",
      adapt: "on",
      rate: "20/s",
      timeout: "1.5m",
      redirects: "0",
      headers: headers("x-env: prod", "X-Colon: a:b")
    })
    assert.strictEqual(fields.url, "https://example.com/hooks")
    assert.deepStrictEqual(fields.types, ["invoice.>", "*.created"])
    assert.strictEqual(fields.sign, "stripe")
    assert.strictEqual(fields.maxInFlight, 25)
    assert.isTrue(fields.adapt)
    assert.deepStrictEqual(fields.rate, { perSecond: 20, burst: 1 })
    assert.strictEqual(Duration.toMillis(fields.timeout ?? 0), 90_000)
    assert.strictEqual(fields.redirects, 0)
    assert.deepStrictEqual(fields.headers, { "x-env": "prod", "X-Colon": "a:b" })
  })

  it("names headers to forward, and to forward no more", () => {
    const { forwardHeaders } = fieldsOf({
      forwardHeaders: {
        forwardHeader: ["X-Correlation-Id", "x-a"],
        noForwardHeader: ["X-B"]
      }
    })
    assert.deepStrictEqual(forwardHeaders, { "x-correlation-id": true, "x-a": true, "x-b": null })
  })

  it("leaves open what is not said", () => {
    assert.deepStrictEqual(fieldsOf({ url: undefined, timeout: undefined }), {})
    const lists = { headers: headers(), retryFor: [], forwardHeaders: { forwardHeader: [] } }
    assert.deepStrictEqual(fieldsOf({ ...lists, headerNames: {} }), {
      ...{ headers: {}, retryFor: {}, forwardHeaders: {}, headerNames: {} }
    })
  })

  it("takes a preset's name or a policy as JSON", () => {
    assert.strictEqual(fieldsOf({ retry: "stripe" }).retry, "stripe")
    const { retry } = fieldsOf({ retry: JSON.stringify(policy) })
    assert.isTrue(typeof retry === "object" && retry.maxAttempts === 16)
  })

  it("takes policies for event types, each by a preset's name or as JSON", () => {
    const { retryFor } = fieldsOf({
      retryFor: ["invoice.> = stripe", `*.paid=${JSON.stringify(policy)}`]
    })
    assert.strictEqual(retryFor?.["invoice.>"], "stripe")
    assert.deepInclude(retryFor?.["*.paid"], { maxAttempts: 16 })
    const [said = ""] = problemsOf({ retryFor: ["a=strip"] })
    assert.match(said, /^--retry-for "a": there is no retry preset "strip"; did you mean "stripe"/)
  })

  it("says of which event types the policy is no JSON", () => {
    const [said = "", ...others] = problemsOf({ retryFor: ['a={"jitter"'] })
    assert.match(said, /^--retry-for "a" "\{\\"jitter\\"" must be .* or a policy as JSON: /)
    assert.deepStrictEqual(others, [])
  })

  it("takes the names of headers that are given", () => {
    const { headerNames } = fieldsOf({ headerNames: { id: "x-id", timestamp: "x-at" } })
    assert.deepStrictEqual(headerNames, { id: "x-id", timestamp: "x-at" })
  })

  it.each<[flag: GivenSettings, said: string]>([
    [
      { url: "ftp://x" },
      '--url "ftp://x" must be an http or https URL such as https://example.com/hooks'
    ],
    [{ url: "x" }, '--url "x" must be a URL such as https://example.com/hooks'],
    [
      { types: "ok,a..b" },
      '--types "a..b" must be event types such as invoice.paid, invoice.> or *.created'
    ],
    [{ types: " , " }, `--types " , " must be event types such as 'invoice.>,*.created'`],
    [
      { sign: "hmac" },
      '--sign "hmac" must be one of standard, standard-ed25519, stripe, github, none'
    ],
    [
      { signatureHeader: "a b" },
      '--signature-header "a b" must be a valid header name such as x-tenant'
    ],
    [
      { headerNames: { type: "a b" } },
      '--type-header "a b" must be a valid header name such as x-tenant'
    ],
    [
      { headerNames: { id: "Host" } },
      '--id-header "Host" is a header that Petrel or HTTP sets itself'
    ],
    [
      { retryFor: ["stripe"] },
      `--retry-for "stripe" must be event types and their policy such as 'invoice.>=stripe'`
    ],
    [
      { retryFor: ["=stripe"] },
      `--retry-for "=stripe" must be event types and their policy such as 'invoice.>=stripe'`
    ],
    [
      { retryFor: ["a,b=stripe"] },
      '--retry-for "a,b" must be event types such as invoice.paid, invoice.> or *.created'
    ],
    [{ retryFor: ["a.*=slack", "a.* = github"] }, '--retry-for "a.*" was given twice'],
    [
      { retryFor: [`a=${JSON.stringify({ ...policy, maxAttempts: 0 })}`] },
      '--retry-for "a": maxAttempts 0 must be between 1 and 1000'
    ],
    [{ adapt: "yes" }, '--adapt "yes" must be on or off'],
    [{ maxInFlight: "ten" }, '--max-in-flight "ten" must be a whole number'],
    [{ maxInFlight: "0" }, "--max-in-flight 0 must be between 1 and 1000"],
    [
      { rate: "20" },
      `--rate "20" must be requests per second, minute or hour such as 20/s, 30/min or '20/s burst 40', from 1/h to 100000/s`
    ],
    [{ contact: "" }, '--contact "" must be 1 to 200 characters on one line'],
    [
      { alerts: "3" },
      "--alerts: 3 must be an object with successWarnPercent, successCriticalPercent, retriesPercent, permanentPercent, attemptsPerDelivery, medianTime, p99Time, deadLetters, …"
    ],
    [{ alerts: '{"medianTim":5}' }, "--alerts: medianTim is not a field; did you mean medianTime?"],
    [
      { alerts: '{"medianTime":5}' },
      '--alerts: medianTime 5 must be off, or a length of time such as "30 seconds"'
    ],
    [
      { alerts: '{"retriesPercent":"5%","window":"1 milli"}' },
      '--alerts: retriesPercent "5%" must be off, or a number from 0 to 100; window "1 milli" must be between 1 second and 1 day'
    ],
    [{ redirects: "1.5" }, '--redirects "1.5" must be a whole number'],
    [{ redirects: "11" }, "--redirects 11 must be between 0 and 10"],
    [
      { timeout: "30 secnds" },
      `--timeout "30 secnds" must be a length of time such as '30 seconds', 5m or 72h`
    ],
    [
      { connectTimeout: "soon" },
      `--connect-timeout "soon" must be a length of time such as '30 seconds', 5m or 72h`
    ],
    [{ timeout: "0s" }, `--timeout "0s" must be a length of time such as '30 seconds', 5m or 72h`],
    [
      { headers: headers("Host: x") },
      '--header "Host" is a header that Petrel or HTTP sets itself'
    ],
    [{ headers: headers("a b: c") }, '--header "a b" must be a valid header name such as x-tenant'],
    [
      { headers: headers("x: a\nb") },
      '--header "x" must have a value of up to 4096 Latin-1 characters'
    ],
    [{ headers: headers("x: 1", "X: 2") }, '--header "X" was given twice']
  ])("refuses %o with the flag, the value and what is right", (flags, said) => {
    assert.deepStrictEqual(problemsOf(flags), [said])
  })

  it("does not repeat a header line that it cannot read, which may be a credential", () => {
    assert.deepStrictEqual(problemsOf({ headers: headers("Bearer abc") }), [
      "--header must be 'name: value'"
    ])
  })

  it("takes a circuit as JSON, with what is to be other than by default", () => {
    assert.deepStrictEqual(fieldsOf({ circuit: '{"failures":3,"rate":"none"}' }).circuit, {
      failures: 3,
      rate: "none"
    })
    const whole =
      '{"failures":5,"coolDown":"30 seconds","maxCoolDown":"15 minutes","successes":2,"onOpen":"backlog","giveUpAfter":"5 days","permanentFailures":100}'
    const { coolDown, giveUpAfter } = fieldsOf({ circuit: whole }).circuit ?? {}
    assert.deepStrictEqual(
      [coolDown, giveUpAfter].map((duration) => Duration.toMillis(duration ?? 0)),
      [30_000, 5 * 24 * 3_600_000]
    )
  })

  it.each<[circuit: string, said: string | RegExp]>([
    [
      "5",
      "--circuit: 5 must be an object with failures, rate, coolDown, maxCoolDown, successes, onOpen, giveUpAfter, permanentFailures, …"
    ],
    [
      "{failures:5}",
      /^--circuit "\{failures:5\}" must be settings as JSON such as '\{"failures":5\}': /
    ],
    ['{"failure":5}', "--circuit: failure is not a field; did you mean failures?"],
    ['{"failures":0}', "--circuit: failures 0 must be between 1 and 10000"],
    [
      '{"coolDown":"30 secnds","onOpen":"wait"}',
      '--circuit: coolDown "30 secnds" must be a length of time such as "30 seconds"; onOpen "wait" must be one of backlog, dead-letter'
    ],
    [
      '{"coolDown":"1 hour","maxCoolDown":"1 minute"}',
      '--circuit: {"coolDown":"1 hour","maxCoolDown":"1 minute"} must have a coolDown that is not longer than its maxCoolDown'
    ]
  ])("says where the circuit %s is wrong", (circuit, said) => {
    const [only = "", ...others] = problemsOf({ circuit })
    assert.deepStrictEqual(others, [])
    if (typeof said === "string") assert.strictEqual(only, said)
    else assert.match(only, said)
  })

  it("suggests the preset that was meant", () => {
    const [said = ""] = problemsOf({ retry: "strip" })
    assert.match(said, /^--retry: there is no retry preset "strip"; did you mean "stripe"\?/)
  })

  it.each<[retry: string, said: string | RegExp]>([
    ["{", /^--retry "\{" must be the name of a preset or a policy as JSON: /],
    [
      "[]",
      "--retry: [] must be an object with backoff, jitter, maxAttempts, window, retryAfterCap, timeout, connectTimeout, statuses, …"
    ],
    [
      JSON.stringify({ ...policy, maxAttempt: 3 }),
      "--retry: maxAttempt is not a field; did you mean maxAttempts?"
    ],
    [
      JSON.stringify({ ...policy, backoff: { kind: "exponential", base: "1 minut", factor: 200 } }),
      '--retry: backoff.base "1 minut" must be a length of time such as "30 seconds"; backoff.factor 200 must be between 1 and 100; backoff.cap is missing'
    ],
    [
      JSON.stringify({ ...policy, backoff: { kind: "expo" } }),
      '--retry: backoff {"kind":"expo"} must be an object with a kind: exponential, linear, fixed, list, decorrelated'
    ],
    [
      JSON.stringify({ ...policy, backoff: { kind: "list", delays: [] } }),
      "--retry: backoff.delays must not be empty"
    ],
    [
      JSON.stringify({ ...policy, statuses: { "404": "never" } }),
      '--retry: statuses.404 "never" must be one of delivered, retry, fail, or an object with retry, alert'
    ]
  ])("says where the policy %s is wrong", (retry, said) => {
    const [only = "", ...others] = problemsOf({ retry })
    assert.deepStrictEqual(others, [])
    if (typeof said === "string") assert.strictEqual(only, said)
    else assert.match(only, said)
  })

  it("is refused for all its problems in one go", () => {
    const problems = problemsOf({ url: "x", sign: "y", maxInFlight: "z", headers: headers("q") })
    assert.deepStrictEqual(
      problems.map((problem) => problem.split(" ")[0]),
      ["--url", "--sign", "--max-in-flight", "--header"]
    )
  })
})
