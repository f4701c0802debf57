import { assert, describe, it } from "@effect/vitest"
import type { ConnectionCheck } from "../../../../src/domain/connection-check.ts"
import type { Fact } from "../../../../src/domain/fact.ts"
import { healthy } from "../../../../src/domain/health.ts"
import type { ErrorClass } from "../../../../src/domain/outcome.ts"
import {
  adviceOf,
  checksOf
} from "../../../../src/operations/endpoints/diagnosis/diagnose-endpoint.ts"
import type { Check, Findings } from "../../../../src/operations/endpoints/diagnosis/findings.ts"
import { blankEndpoint } from "../../../../src/operations/endpoints/endpoint-change.ts"

const now = 1_800_000_000_000
const minute = 60_000
const day = 24 * 60 * minute
const endpoint = {
  ...blankEndpoint({ tenant: "acme", id: "hook" }, "g", now),
  url: "https://hooks.example.com/in",
  types: ["invoice.>"] as const
}
const certificate = {
  subject: "hooks.example.com",
  issuer: "Some CA",
  validFrom: now - 30 * day,
  validUntil: now + 60 * day
}
const tls = { protocol: "TLSv1.3", chain: [certificate] }
const address = { address: "192.0.2.1", durationMs: 20, tls }
const connection: ConnectionCheck = {
  ...{ host: "hooks.example.com", port: 443, isSecure: true, lookupMs: 4 },
  ...{ refused: 0, addresses: [address] }
}
const answer = { since: now, inFlight: 0, inLine: 0, attempts: 5, delivered: 5 }
const well: Findings = {
  endpoint,
  health: healthy("g"),
  activity: {
    partition: 3,
    owner: "w1",
    answer,
    waiting: { queue: 0, schedules: 0, backlog: 0 }
  },
  attempts: { failures: [], since: now - 60 * minute, deliveredAt: now - minute },
  rate: undefined,
  subscription: {
    types: [
      { type: "invoice.paid", count: 12, isMatched: true },
      { type: "user.created", count: 40, isMatched: false }
    ],
    matchedAt: now - minute
  },
  connection,
  deadLetters: 0
}

const failed = (outcome: number | ErrorClass, fields: Partial<Fact> = {}): Fact => ({
  ...{ v: 1, kind: "attempt-failed", at: now - minute, tenant: "acme", endpoint: "hook" },
  ...(typeof outcome === "number"
    ? { status: outcome }
    : { error: { class: outcome, message: `it was ${outcome}` } }),
  ...fields
})

const failing = (...failures: ReadonlyArray<Fact>): Partial<Findings> => ({
  attempts: { failures, since: now - 60 * minute, deliveredAt: undefined }
})

const waiting = (counts: Partial<Findings["activity"]["waiting"]>): Partial<Findings> => ({
  activity: { ...well.activity, waiting: { queue: 0, schedules: 0, backlog: 0, ...counts } }
})

const checksFor = (changes: Partial<Findings>): ReadonlyArray<Check> =>
  checksOf({ ...well, ...changes }, now)

const bad = (changes: Partial<Findings>) =>
  checksFor(changes)
    .filter(({ result }) => result !== "ok")
    .map(({ name, result }) => `${name}: ${result}`)

const check = (changes: Partial<Findings>, name: Check["name"]): Check => {
  const found = checksFor(changes).find((one) => one.name === name)
  assert.isDefined(found)
  return found as Check
}

describe("the diagnosis of an endpoint", () => {
  it("says until when a Retry-After holds what waits", () => {
    const asked = {
      health: { ...healthy("g"), notBefore: now + minute },
      ...waiting({ backlog: 5 })
    }
    const { advice, result, says } = check(asked, "waiting")
    assert.strictEqual(result, "warning")
    assert.match(says, /^5 deliveries wait until .*, because the receiver asked for it/)
    assert.match(advice ?? "", /retry-now acme\/hook --ignore-retry-after/)
    assert.strictEqual(check({ ...asked, ...waiting({}) }, "waiting").says, "nothing waits")
    const over = { ...asked, health: { ...healthy("g"), notBefore: now } }
    assert.strictEqual(check(over, "waiting").result, "ok")
  })

  it("that is well finds nothing, and advises nothing", () => {
    const checks = checksFor({})
    assert.deepStrictEqual(
      checks.map(({ name, result }) => [name, result]),
      [
        ["events", "ok"],
        ["state", "ok"],
        ["worker", "ok"],
        ["name", "ok"],
        ["connection", "ok"],
        ["certificate", "ok"],
        ["failures", "ok"],
        ["circuit", "ok"],
        ["waiting", "ok"]
      ]
    )
    assert.deepStrictEqual(adviceOf(checks), [])
  })

  it.each<[what: string, changes: Partial<Findings>, found: ReadonlyArray<string>]>([
    [
      "is disabled",
      { endpoint: { ...endpoint, disabled: { at: now, by: "x", reason: "410" } } },
      ["state: problem"]
    ],
    [
      "is suspended",
      { endpoint: { ...endpoint, suspended: { at: now, by: "x", reason: "failing" } } },
      ["state: problem"]
    ],
    [
      "is paused",
      { endpoint: { ...endpoint, paused: { at: now, by: "ana" } } },
      ["state: warning"]
    ],
    [
      "has no worker",
      {
        activity: { ...well.activity, owner: undefined, answer: undefined },
        connection: undefined
      },
      ["worker: problem", "connection: unknown"]
    ],
    [
      "has a worker whose clock is wrong",
      { activity: { ...well.activity, answer: { ...answer, clockSkewMs: 600_000 } } },
      ["worker: problem"]
    ],
    [
      "has a worker that does not answer",
      { activity: { ...well.activity, answer: undefined }, connection: undefined },
      ["worker: unknown", "connection: unknown"]
    ],
    [
      "has a tenant that publishes nothing",
      { subscription: { types: [], matchedAt: undefined } },
      ["events: warning"]
    ],
    [
      "subscribed to what is not published",
      {
        subscription: {
          types: [{ type: "invoices.paid", count: 2, isMatched: false }],
          matchedAt: undefined
        }
      },
      ["events: problem"]
    ],
    [
      "has a name that does not resolve",
      {
        connection: {
          ...connection,
          addresses: [],
          error: { class: "dns", message: "the name hooks.example.com is not known" }
        }
      },
      ["name: problem"]
    ],
    [
      "cannot be connected to",
      {
        connection: {
          ...connection,
          addresses: [
            { address: "192.0.2.1", durationMs: 1, error: { class: "refused", message: "refused" } }
          ]
        }
      },
      ["connection: problem"]
    ],
    [
      "can be connected to at one of two addresses",
      {
        connection: {
          ...connection,
          addresses: [
            address,
            {
              address: "192.0.2.2",
              durationMs: 1,
              error: { class: "connect-timeout", message: "no connection within 10 s" }
            }
          ]
        }
      },
      ["connection: warning"]
    ],
    [
      "has a certificate that nobody trusts",
      {
        connection: {
          ...connection,
          addresses: [{ ...address, tls: { ...tls, distrust: "DEPTH_ZERO_SELF_SIGNED_CERT" } }]
        }
      },
      ["certificate: problem"]
    ],
    [
      "has a certificate that ends soon",
      {
        connection: {
          ...connection,
          addresses: [
            {
              ...address,
              tls: { ...tls, chain: [{ ...certificate, validUntil: now + 3 * day }] }
            }
          ]
        }
      },
      ["certificate: warning"]
    ],
    ["fails", failing(failed(500), failed(500)), ["failures: problem"]],
    [
      "failed before, and is well again",
      {
        attempts: {
          failures: [failed(500)],
          since: now - 60 * minute,
          deliveredAt: now - minute / 2
        }
      },
      []
    ],
    [
      "has an open circuit",
      {
        health: {
          ...healthy("g"),
          circuit: { state: "open", since: now - minute, until: now + minute, why: "503" }
        }
      },
      ["circuit: warning"]
    ],
    ["has dead letters", { deadLetters: 3 }, ["dead letters: warning"]],
    [
      "has more waiting than its cap lets go",
      {
        activity: {
          ...well.activity,
          answer: { ...answer, inFlight: endpoint.maxInFlight },
          waiting: { queue: 0, schedules: 0, backlog: 500 }
        }
      },
      ["waiting: warning"]
    ]
  ])("that %s", (_, changes, found) => {
    assert.deepStrictEqual(bad(changes), found)
    const advised = checksFor(changes).filter(({ advice }) => advice !== undefined)
    assert.strictEqual(adviceOf(checksFor(changes)).length, advised.length)
  })

  it("says what rate lets deliveries go, unless the receiver asked to wait", () => {
    const rate = { perSecond: 0.5, burst: 1 }
    const changes = { endpoint: { ...endpoint, rate }, ...waiting({ backlog: 500 }) }
    assert.deepStrictEqual(check(changes, "waiting"), {
      name: "waiting",
      result: "warning",
      says: "500 deliveries wait, and the endpoint's own rate allows 30/min",
      advice:
        "If its receiver can take more, raise the rate (`petrel endpoint set acme/hook --rate`)."
    })
    const asked = { ...changes, health: { ...healthy("g"), notBefore: now + minute } }
    assert.match(check(asked, "waiting").says, /because the receiver asked for it/)
  })

  it("counts what comes straight from events among what waits", () => {
    const activity = { ...well.activity, answer: { ...answer, inFlight: 2, inLine: 8 } }
    assert.strictEqual(check({ activity }, "waiting").says, "10 deliveries wait")
  })

  it("says of a cap of one that its request is in flight", () => {
    const activity = {
      ...well.activity,
      answer: { ...answer, inFlight: 1 },
      waiting: { queue: 0, schedules: 0, backlog: 2 }
    }
    assert.strictEqual(
      check({ endpoint: { ...endpoint, maxInFlight: 1 }, activity }, "waiting").says,
      "2 deliveries wait, and the one request that it may have at once is in flight"
    )
  })

  it("of an open circuit advises to try now only where something waits, which is the probe", () => {
    const circuit = { state: "open", since: now - minute, until: now + minute } as const
    const open = { health: { ...healthy("g"), circuit } }
    const closes = "2 probes in a row that succeed close the circuit."
    assert.strictEqual(check(open, "circuit").advice, closes)
    assert.strictEqual(
      check({ ...open, ...waiting({ backlog: 1 }) }, "circuit").advice,
      `Once its receiver is well, do not wait for the probe, try now (\`petrel endpoint retry-now acme/hook\`). ${closes}`
    )
  })

  it("advises about problems before it advises about warnings", () => {
    const checks = checksFor({
      endpoint: { ...endpoint, paused: { at: now, by: "ana" } },
      ...failing(failed(404))
    })
    const advice = adviceOf(checks)
    assert.match(advice[0] ?? "", /The path is wrong/)
    assert.match(advice[1] ?? "", /Resume it/)
  })
})

describe("what it says of failures", () => {
  it("counts them by outcome, and shows the latest answer", () => {
    const response = { headers: { "x-request-id": "r-7" }, body: "no such\ntable", bytes: 13 }
    const { advice, says } = check(
      failing(failed("timeout"), failed(500), failed(500, { response })),
      "failures"
    )
    assert.match(says, /^3 failed attempts: 2 × 500, 1 × timeout; the latest at .*: no such table$/)
    assert.match(advice ?? "", /r-7\.$/)
  })

  it.each<[outcome: number | ErrorClass, advice: RegExp]>([
    [401, /secret/],
    [403, /secret/],
    [404, /path/],
    [405, /POST/],
    [410, /remove/],
    [413, /body/],
    [415, /content type/],
    [429, /--rate/],
    [302, /redirects/],
    [422, /content/],
    [418, /refuses/],
    [500, /its log/i],
    [503, /proxy/],
    ["timeout", /--timeout/],
    ["connect-timeout", /firewall/],
    ["refused", /listens/],
    ["reset", /closes connections/],
    ["unreachable", /route/],
    ["connection", /connection/],
    ["dns", /DNS/],
    ["certificate", /certificate/],
    ["handshake", /TLS/],
    ["address", /--allow-network/],
    ["protocol", /HTTP/],
    ["redirect", /redirects/]
  ])("advises after %s", (outcome, advice) => {
    const unseen = { ...failing(failed(outcome)), connection: undefined }
    assert.match(check(unseen, "failures").advice ?? "", advice)
  })
})

describe("what it says of a failure on the way", () => {
  const refused = failing(failed("refused"))

  it("leaves the advice to the check that still meets it", () => {
    const address = { address: "192.0.2.1", durationMs: 1 }
    const error = { class: "refused", message: "refused" } as const
    const blocked = { ...connection, addresses: [{ ...address, error }] }
    const checks = checksFor({ ...refused, connection: blocked })
    assert.deepStrictEqual(adviceOf(checks).length, 1)
    assert.match(adviceOf(checks)[0] ?? "", /^Nothing listens/)
  })

  it("advises to try again where the way is free now", () => {
    const waits = { ...refused, ...waiting({ schedules: 1 }) }
    assert.match(check(waits, "failures").advice ?? "", /retry-now acme\/hook/)
    // There is nothing to try.
    assert.isUndefined(check(refused, "failures").advice)
  })
})

describe("what it says of the failures of an endpoint that gets nothing now", () => {
  const held: ReadonlyArray<Partial<Findings["endpoint"]>> = [
    { disabled: { at: now, by: "x", reason: "failing" } },
    { suspended: { at: now, by: "x", reason: "failing" } },
    { paused: { at: now, by: "ana" } }
  ]

  it.each(held)("%j: not that retries go on, nor that they may be sooner", (state) => {
    const changes = { endpoint: { ...endpoint, ...state }, ...waiting({ backlog: 1 }) }
    const failures = check({ ...changes, ...failing(failed(500)) }, "failures")
    assert.match(failures.advice ?? "", /its log says why, at the times above\.$/)
    assert.isUndefined(check({ ...changes, ...failing(failed("refused")) }, "failures").advice)
  })

  it("but of one that is sent events that nothing has to be done", () => {
    const { advice } = check({ ...failing(failed(500)), ...waiting({ queue: 1 }) }, "failures")
    assert.match(advice ?? "", /Petrel continues to retry; nothing has to be done here\.$/)
  })

  it("nor of one for which nothing waits any more", () => {
    const { advice } = check(failing(failed(500)), "failures")
    assert.match(advice ?? "", /its log says why, at the times above\.$/)
  })
})

describe("what it says of a certificate whose authority is not known", () => {
  it.each(["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"])(
    "%s: who issued it, and both that it may be",
    (distrust) => {
      const addresses = [{ ...address, tls: { ...tls, distrust } }]
      const { advice, says } = check({ connection: { ...connection, addresses } }, "certificate")
      assert.match(says, /^its issuer is not known here: .* ← Some CA \(not sent\); /)
      assert.match(advice ?? "", /authority of your own, .*--receiver-ca`\)\. .*its whole chain/)
    }
  )
})

describe("what it says of 429s", () => {
  const response = { headers: { "retry-after": "30" }, body: "", bytes: 0 }
  const limited = (inMinute: number, inSecond = Math.ceil(inMinute / 60)) => ({
    ...failing(failed(429, { response })),
    rate: { inMinute, inSecond, at: now - minute }
  })

  it("that follow many requests: Petrel may cause them itself", () => {
    const { advice, says } = check(limited(600), "rate")
    assert.match(
      says,
      /^Petrel may cause the 429s itself: 600 requests .*, 10 of them in the last second; its Retry-After was 30 s$/
    )
    assert.match(advice ?? "", /--rate 5\/s/)
  })

  it.each([
    [1, 1],
    [2, 1],
    [2, 2],
    [10, 1]
  ])("that follow %d requests in a minute, %d in a second: they are not", (inMinute, inSecond) => {
    const { advice, says } = check(limited(inMinute, inSecond), "rate")
    assert.match(says, new RegExp(`^Petrel does not cause the 429s: ${inMinute} request`))
    assert.notInclude(advice ?? "", "--rate")
    assert.isUndefined(check(limited(inMinute, inSecond), "failures").advice)
  })

  it.each([
    [3, 3, "2/s"],
    [11, 1, "5/min"]
  ])("that follow %d in a minute, %d in a second: they may be", (inMinute, inSecond, half) => {
    const { advice, says } = check(limited(inMinute, inSecond), "rate")
    assert.match(says, /^Petrel may cause the 429s itself: /)
    assert.include(advice ?? "", `--rate ${half}`)
  })
})

describe("what it says of a filter that matches nothing", () => {
  it("names the published type that it may have meant", () => {
    const types = [
      { type: "invoices.paid", count: 2, isMatched: false },
      { type: "user.created", count: 40, isMatched: false }
    ]
    const { advice, says } = check({ subscription: { types, matchedAt: undefined } }, "events")
    assert.match(
      says,
      /matches invoice\.>; published are user\.created \(40\), invoices\.paid \(2\)$/
    )
    assert.match(advice ?? "", /^Did invoice\.> mean invoices\.paid\?/)
  })
})
