import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import type { Endpoint } from "../../../src/domain/endpoint.ts"
import { cautions } from "../../../src/operations/endpoints/cautions.ts"
import { blankEndpoint } from "../../../src/operations/endpoints/endpoint-change.ts"

const before: Endpoint = {
  ...blankEndpoint({ tenant: "acme", id: "hook" }, "0123456789abcdef", 1),
  url: "https://example.com/",
  headers: { "X-Env": "prod", "x-team": "billing" }
}

describe("cautions", () => {
  const of = (changes: Partial<Endpoint>) => {
    return cautions({ ...before, ...changes })
  }

  it("say nothing of what is usual", () => {
    assert.deepStrictEqual(of({}), [])
  })

  it.each(["http://localhost:3000/", "http://127.0.0.1/", "http://10.1.2.3/", "http://[::1]/"])(
    "say that %s is reached only with --allow-network",
    (url) => {
      const [said = "", ...others] = of({ url, headers: {} })
      assert.match(said, /is not a public address: .*--allow-network /)
      assert.deepStrictEqual(others, [])
    }
  )

  it.each(["http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://[fe80::1]/"])(
    "say that %s is refused, and not how to allow it",
    (url) => {
      const [said = "", ...others] = of({ url, headers: {} })
      assert.match(said, /is not a public address: requests to it are refused$/)
      assert.deepStrictEqual(others, [])
    }
  )

  it("name what http shows to whoever is on the way", () => {
    const headers = { authorization: "Bearer x" }
    assert.deepStrictEqual(of({ url: "http://hooks.example.com/?token=t", headers }), [
      "the URL is http: anyone on the network path can read the URL's query and the header authorization; use https if that is a credential"
    ])
    assert.deepStrictEqual(of({ url: "http://hooks.example.com/", headers: {} }), [])
    assert.deepStrictEqual(of({ url: "https://hooks.example.com/?token=t", headers }), [])
  })

  it("name a port that workers do not send to by themselves", () => {
    const [said = "", ...others] = of({ url: "https://hooks.example.com:8443/" })
    assert.match(said, /^port 8443 is neither 443 nor 80: .*--allow-port 8443/)
    assert.deepStrictEqual(others, [])
    assert.deepStrictEqual(of({ url: "https://hooks.example.com:80/" }), [])
  })

  it("warn of a time-out below 10 s, the endpoint's own or its policy's", () => {
    assert.match(of({ timeout: Duration.seconds(9) })[0] ?? "", /^the time-out of 9 s is short/)
    assert.match(of({ retry: "shopify" })[0] ?? "", /^the retry policy's time-out of 5 s is short/)
    assert.deepStrictEqual(of({ timeout: Duration.seconds(10) }), [])
    assert.deepStrictEqual(of({ retry: "shopify", timeout: Duration.seconds(10) }), [])
    const retryFor = { "invoice.>": "shopify", "order.>": "stripe" }
    const [said = "", ...others] = of({ retryFor })
    assert.match(said, /^the retry policy's time-out for invoice\.> of 5 s is short/)
    assert.deepStrictEqual(others, [])
    assert.deepStrictEqual(of({ retryFor, timeout: Duration.seconds(10) }), [])
  })

  it("warn of a connect time-out that the whole attempt's does not let come", () => {
    const never = "the connect time-out of 40 s never comes, since a whole attempt has 30 s"
    assert.deepStrictEqual(of({ connectTimeout: Duration.seconds(40) }), [never])
    const timeout = Duration.seconds(60)
    assert.deepStrictEqual(of({ connectTimeout: Duration.seconds(40), timeout }), [])
    assert.deepStrictEqual(of({ timeout: Duration.seconds(10) }), [])
    const [said = ""] = of({ retry: "formspring", timeout: Duration.seconds(20) })
    assert.match(said, /^the connect time-out of 30 s never comes/)
  })

  it("warn of a policy that gives up within a few hours, by its window or its attempts", () => {
    const long = { timeout: Duration.seconds(10) }
    const cases = {
      slack:
        "gives up after 30 min: if the receiver is down for longer, its events become dead letters",
      "doubling-1s":
        "makes 10 attempts within 8 min 31 s: deliveries that fail for longer are dead-lettered, unless the circuit opens first"
    }
    for (const [retry, said] of Object.entries(cases)) {
      assert.deepStrictEqual(of({ ...long, retry }), [`the retry policy ${said}`])
      const retryFor = { "invoice.>": retry }
      assert.deepStrictEqual(of({ ...long, retryFor }), [`the retry policy for invoice.> ${said}`])
    }
    for (const retry of ["default", "stripe", "mailgun", "twilio-24h"])
      assert.deepStrictEqual(of({ ...long, retry }), [], retry)
  })

  it("warn of what a policy's window or number of attempts leaves it", () => {
    const backoff = { kind: "fixed", delay: Duration.hours(3) } as const
    const retryAfterCap = Duration.hours(24)
    const policy = { backoff, jitter: "none", maxAttempts: 9, window: Duration.hours(5) } as const
    const said = (changes: Partial<typeof policy | { maxAttempts: number }>) =>
      of({ retry: { ...policy, retryAfterCap, ...changes } })
    assert.deepStrictEqual(said({}), [])
    assert.match(said({ maxAttempts: 2 })[0] ?? "", /makes 2 attempts within 3 h: /)
    assert.match(said({ maxAttempts: 1 })[0] ?? "", /makes a single attempt: /)
  })

  it("name a policy for event types that the endpoint does not want", () => {
    const retryFor = { "*.paid": "default", "order.>": "default" }
    assert.deepStrictEqual(of({ types: ["invoice.>", "mail"], retryFor }), [
      "the retry policy for order.> is for none of the endpoint's event types, invoice.>, mail"
    ])
  })

  it("say that libraries of Standard Webhooks do not find headers of other names", () => {
    const headerNames = { id: "x-id", type: "x-type", timestamp: "x-at" }
    for (const sign of ["standard", "standard-ed25519"] as const)
      assert.deepStrictEqual(of({ sign, headerNames }), [
        "receivers' libraries for Standard Webhooks refuse requests without webhook-id and webhook-timestamp: a receiver with such a library has to rename x-id and x-at first"
      ])
    assert.deepStrictEqual(of({ headerNames: { type: "x-type" } }), [])
    for (const sign of ["stripe", "github", "none"] as const)
      assert.deepStrictEqual(of({ sign, headerNames }), [])
  })
})
