import { stripVTControlCharacters } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { configurationOf } from "../../src/domain/configuration.ts"
import type { Fact, Plan } from "../../src/domain/fact.ts"
import { factLine } from "../../src/text/fact-line.ts"
import { spanText } from "../../src/text/quantities.ts"

const at = new Date(2026, 2, 4, 10, 32, 7, 120).getTime()
const fact = (changes: Partial<Fact>): Fact => ({
  v: 1,
  kind: "delivered",
  at,
  tenant: "acme",
  endpoint: "billing",
  event: "acme.invoice-42",
  type: "invoice.paid",
  ...changes
})
const line = (changes: Partial<Fact>, options: { now?: number; colour?: boolean } = {}) =>
  factLine(fact(changes), { now: at, colour: false, ...options })
const plan = (ids: ReadonlyArray<string>, skipped: ReadonlyArray<string> = []): Plan => ({
  part: 0,
  last: true,
  endpoints: ids.map((id) => ({ id, generation: "g", revision: 1, deadline: 0 })),
  skipped: skipped.map((id) => ({ id, reason: "endpoint-disabled" }))
})

describe("the line of a fact", () => {
  it("of a delivery tells which attempt, the status and how long it took", () => {
    assert.strictEqual(
      line({ attempt: 3, status: 200, durationMs: 11.6 }),
      "10:32:07  acme.invoice-42 → acme/billing       #3  200   12 ms  delivered: invoice.paid"
    )
  })

  it("of a delivery that was redirected tells where to", () => {
    const to = "https://eu.example.com/hooks"
    const redirects = [{ status: 302, to }]
    assert.strictEqual(
      line({ attempt: 1, status: 200, durationMs: 11.6, redirects }).slice(45),
      `  #1  200  from ${to}   12 ms  delivered: invoice.paid`
    )
    assert.include(
      line({ attempt: 1, status: 200, redirects: [...redirects, ...redirects] }),
      `from ${to} (2 redirects)`
    )
  })

  it("of a delivery names the type, whether or not it tells the plan, too", () => {
    assert.strictEqual(
      line({ attempt: 1, status: 200, durationMs: 11.6, plan: plan(["billing"]) }),
      "10:32:07  acme.invoice-42 → acme/billing       #1  200   12 ms  delivered: invoice.paid"
    )
  })

  it("of a change of an endpoint tells the revision, and who made it", () => {
    const of = (change: Fact["change"], by?: string) =>
      line({ kind: "endpoint-changed", event: undefined, change, by }).slice(10).trim()
    const now = configurationOf({
      v: 1,
      tenant: "acme",
      id: "billing",
      generation: "g",
      url: "https://example.com/",
      types: [">"],
      sign: "none",
      secrets: [],
      retry: "default",
      maxInFlight: 10,
      redirects: 3,
      headers: {},
      createdAt: 0,
      updatedAt: 0
    })
    const told = "acme/billing".padEnd(37)
    assert.strictEqual(
      of({ revision: 12, storedAt: at, now }, "ana@host"),
      `${told}configured: revision 12 by ana@host`
    )
    assert.strictEqual(
      of({ revision: 13, storedAt: at, isUnreadable: true }),
      `${told}unreadable: revision 13`
    )
    assert.strictEqual(of({ revision: 14, storedAt: 0 }), `${told}removed: revision 14`)
  })

  it("of a late success says so", () => {
    assert.strictEqual(
      line({ kind: "delivered-late", attempt: 1, status: 200, durationMs: 11.6 }),
      "10:32:07  acme.invoice-42 → acme/billing       #1  200   12 ms  delivered late"
    )
  })

  it("of a failed attempt tells when the next one comes", () => {
    assert.strictEqual(
      line({
        kind: "attempt-failed",
        attempt: 2,
        status: 503,
        durationMs: 12,
        nextAttemptAt: at + 2_000
      }),
      "10:32:07  acme.invoice-42 → acme/billing       #2  503   12 ms  next in 2 s"
    )
  })

  it("of a probe says that it was one", () => {
    assert.strictEqual(
      line({ attempt: 7, probe: true, status: 200, durationMs: 12 }),
      "10:32:07  acme.invoice-42 → acme/billing       #7  probe  200   12 ms  delivered: invoice.paid"
    )
  })

  it("of an alert tells what was found, how the last attempts went and whom to tell", () => {
    const alert = {
      id: "alert_1",
      name: "success-critical",
      about: "endpoint",
      level: "critical",
      value: 81.25,
      threshold: 95,
      unit: "percent",
      windowMs: 600_000,
      raisedAt: at,
      contact: "ana@acme.example",
      failuresInRow: 7,
      lastStatus: 503
    } as const
    const { event: _, ...about } = fact({ kind: "alert-raised", alert })
    assert.strictEqual(
      factLine(about, { now: at, colour: false }),
      "10:32:07  acme/billing                         success-critical: 81.25% succeeded over 10 min, less than 95%; 7 failed in a row; the last: 503; contact: ana@acme.example"
    )
    const replaced = { ...alert, replaces: "success-low", also: ["dead-letters", "retries-high"] }
    assert.include(
      line({ ...about, alert: replaced } as Fact),
      "; it was success-low; also raised: dead-letters, retries-high; 7 failed in a row; "
    )
    const cleared = {
      ...about,
      kind: "alert-cleared",
      endpoint: "_",
      reason: "it is well again"
    } as const
    assert.strictEqual(
      factLine({ ...cleared, tenant: "_" }, { now: at, colour: false }),
      "10:32:07  the system                           success-critical cleared: it is well again"
    )
  })

  it("fits into 80 columns for ids of usual length, and cuts a longer one in the middle", () => {
    const sample = { tenant: "default", endpoint: "sample", attempt: 1, status: 503 } as const
    const failed = { kind: "attempt-failed", durationMs: 850, nextAttemptAt: at + 898 } as const
    const usual = line({ ...sample, ...failed, event: "default.invoice-42" })
    assert.isAtMost(usual.length, 80)
    assert.match(
      line({ ...sample, event: "default.evt_f834ce62c7fb6289cfa0d202" }),
      / default\.evt_f…89cfa0d202 → default\/sample /
    )
    assert.match(line({ event: "a".repeat(24) }), / a{24} → /)
  })

  it("of an attempt without an answer tells why there was none", () => {
    assert.strictEqual(
      line({
        kind: "attempt-failed",
        attempt: 1,
        error: { class: "refused", message: "connect ECONNREFUSED" },
        durationMs: 1
      }),
      "10:32:07  acme.invoice-42 → acme/billing       #1  refused: connect ECONNREFUSED    1 ms  no further attempt"
    )
  })

  it("of a dead letter tells the reason, how often it was tried and the last answer", () => {
    assert.strictEqual(
      line({ kind: "dead-lettered", reason: "attempts", attempt: 5, status: 500 }),
      "10:32:07  acme.invoice-42 → acme/billing       after 5 attempts  500  dead-lettered: attempts"
    )
    assert.strictEqual(
      line({ kind: "dead-lettered", reason: "deadline", attempt: 12, probes: 9, status: 503 }),
      "10:32:07  acme.invoice-42 → acme/billing       after 12 attempts, 9 of them probes  503  dead-lettered: deadline"
    )
    assert.strictEqual(
      line({ kind: "dead-lettered", reason: "endpoint-disabled", attempt: 1, probes: 1 }),
      "10:32:07  acme.invoice-42 → acme/billing       after 1 attempt, a probe  dead-lettered: endpoint-disabled"
    )
    assert.strictEqual(
      line({ kind: "dead-lettered", reason: "deadline", attempt: 4, probes: 1 }),
      "10:32:07  acme.invoice-42 → acme/billing       after 4 attempts, 1 of them a probe  dead-lettered: deadline"
    )
    assert.strictEqual(
      line({ kind: "dead-lettered", reason: "deadline", attempt: 0 }),
      "10:32:07  acme.invoice-42 → acme/billing       never attempted  dead-lettered: deadline"
    )
  })

  it("of a plan names the first endpoints and counts the others", () => {
    const routed = { kind: "routed", endpoint: "_" } as const
    assert.match(line({ ...routed, plan: plan(["a"]) }), /invoice-42 → acme +invoice.paid for a$/)
    assert.match(
      line({ ...routed, plan: plan([]) }),
      /invoice.paid for nobody: no endpoint wants it$/
    )
    assert.match(line({ ...routed, plan: plan([], ["f"]) }), /paid for nobody \(1 disabled\)$/)
    assert.match(
      line({ ...routed, plan: plan(["a", "b", "c", "d", "e"], ["f"]) }),
      /for a, b, c and 2 more \(1 disabled\)$/
    )
  })

  it("of an endpoint names no event, and of an event nobody owns no tenant", () => {
    const { event: _, ...disabled } = fact({ kind: "endpoint-disabled", reason: "gone" })
    assert.match(factLine(disabled, { now: at, colour: false }), / acme\/billing +disabled: gone$/)
    assert.match(
      line({ kind: "unroutable", tenant: "_", endpoint: "_", event: "evt_9", reason: "no type" }),
      /^10:32:07 {2}evt_9 +unroutable: no type$/
    )
  })

  it("of a circuit tells why it opened and when it is probed, and what follows", () => {
    const of = (changes: Partial<Fact>) => {
      const { event: _, ...change } = fact(changes)
      return factLine(change, { now: at, colour: false }).replace(/^.*acme\/billing +/, "")
    }
    const opened = { kind: "circuit-opened", reason: "5 failures in a row" } as const
    assert.strictEqual(
      of({ ...opened, nextAttemptAt: at + 30_000 }),
      "circuit opened: 5 failures in a row  probed in 30 s"
    )
    assert.strictEqual(of(opened), "circuit opened: 5 failures in a row")
    assert.strictEqual(of({ kind: "circuit-half-opened" }), "circuit half-open")
    assert.strictEqual(of({ kind: "circuit-closed" }), "circuit closed")
    assert.strictEqual(of({ kind: "endpoint-paused" }), "paused")
    assert.strictEqual(of({ kind: "endpoint-suspended", reason: "410" }), "suspended: 410")
    assert.strictEqual(of({ kind: "endpoint-paused", reason: "moving" }), "paused: moving")
    assert.strictEqual(of({ kind: "endpoint-paused", user: "ops" }), "paused (user ops)")
    assert.strictEqual(
      of({ kind: "endpoint-disabled", reason: "moving", by: "ana@host", user: "ops" }),
      "disabled by ana@host (user ops): moving"
    )
    assert.strictEqual(of({ kind: "endpoint-resumed" }), "resumed")
  })

  it("says the date of another day", () => {
    const now = new Date(2026, 2, 5, 0, 0, 1).getTime()
    assert.match(line({}, { now }), /^2026-03-04 10:32:07 {2}/)
  })

  it("lets nothing through that would control a terminal", () => {
    const text = line({ kind: "unroutable", reason: "a\u001b[2J\nb\u009bc" })
    assert.match(text, /unroutable: a \[2J b c$/)
  })

  it("is the same text in colour", () => {
    const coloured = line({ attempt: 1, status: 200 }, { colour: true })
    const plain = line({ attempt: 1, status: 200 })
    assert.notStrictEqual(coloured, plain)
    assert.strictEqual(stripVTControlCharacters(coloured), plain)
  })
})

describe("a length of time", () => {
  for (const [ms, text] of [
    [0, "0 ms"],
    [850.4, "850 ms"],
    [1_000, "1 s"],
    [2_540, "2.5 s"],
    [12_400, "12 s"],
    [60_000, "1 min"],
    [90_000, "1 min 30 s"],
    [3_900_000, "1 h 5 min"],
    [7_200_000, "2 h"],
    [(3 * 24 + 2) * 3_600_000, "3 d 2 h"]
  ] as const)
    it(`of ${ms} ms is ${text}`, () => {
      assert.strictEqual(spanText(ms), text)
    })
})
