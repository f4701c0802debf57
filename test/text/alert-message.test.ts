import { assert, describe, it } from "@effect/vitest"
import type { Alert } from "../../src/domain/alert.ts"
import { alertMessage } from "../../src/text/alert-text.ts"

const alert: Alert = {
  id: "alert_1",
  name: "dead-letters",
  about: "endpoint",
  level: "warn",
  value: 1,
  threshold: 1,
  unit: "",
  windowMs: 600_000,
  raisedAt: Date.UTC(2026, 2, 4, 10, 30)
}
const attempts = [503, 503, 500].map((status, index) => ({ attempt: index + 1, at: 1, status }))
const lastDeadLetter = {
  delivery: "evt_7.billing",
  reason: "attempts",
  attempts: [...attempts, { attempt: 4, at: 1, error: "timeout" } as const]
}

const message = (data: Readonly<Record<string, unknown>>) =>
  alertMessage(JSON.stringify({ type: "petrel.alert.any", data }))

describe("an alert as a message", () => {
  for (const [name, data, expected] of [
    [
      "says what is wrong with an endpoint, since when, and which command says more",
      { ...alert, state: "raised", tenant: "acme", endpoint: "billing" },
      "Petrel: warn about acme/billing (dead-letters, since 2026-03-04T10:30:00Z): 1 dead letter over 10 min. See `petrel endpoint diagnose acme/billing`."
    ],
    [
      "says what the attempts of the last dead letter got, and whom to tell",
      { ...alert, state: "raised", tenant: "acme", endpoint: "a", lastDeadLetter, contact: "ana" },
      "Petrel: warn about acme/a (dead-letters, since 2026-03-04T10:30:00Z): 1 dead letter over 10 min; evt_7.billing was given up after 503 ×2, 500, timeout (reason: attempts); contact: ana. See `petrel endpoint diagnose acme/a`."
    ],
    [
      "does not call a failure the last answer where successes came after it",
      {
        ...{ ...alert, name: "success-low", value: 97.5, threshold: 99, unit: "percent" },
        ...{ state: "raised", tenant: "acme", endpoint: "a", failuresInRow: 0, lastStatus: 500 }
      },
      "Petrel: warn about acme/a (success-low, since 2026-03-04T10:30:00Z): 97.5% succeeded over 10 min, less than 99%; the last failure: 500. See `petrel endpoint diagnose acme/a`."
    ],
    [
      "is about a tenant",
      { ...alert, name: "test", about: "tenant", state: "raised", tenant: "acme" },
      "Petrel: warn about acme (test, since 2026-03-04T10:30:00Z): a test: nothing is wrong. See `petrel endpoint list acme`."
    ],
    [
      "is about the system",
      { ...alert, name: "circuits-open", level: "critical", value: 12, state: "raised" },
      "Petrel: critical about the system (circuits-open, since 2026-03-04T10:30:00Z): 12 circuits are open at the same time. See `petrel status`."
    ],
    [
      "says that it is over",
      { ...alert, state: "cleared", tenant: "acme", endpoint: "billing" },
      "Petrel: dead-letters of acme/billing is over."
    ]
  ] as const)
    it(name, () => assert.strictEqual(message(data), expected))

  it("is nothing where the text is no alert", () => {
    assert.strictEqual(alertMessage("{}"), undefined)
    assert.strictEqual(alertMessage("hello"), undefined)
    assert.strictEqual(message({ ...alert, state: "unknown" }), undefined)
  })
})
