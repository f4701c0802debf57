import type { CircuitSettings } from "../../src/domain/circuit.ts"
import { defaultCircuit } from "../../src/domain/circuit.ts"
import type { Health } from "../../src/domain/health.ts"
import { healthy } from "../../src/domain/health.ts"
import type { Circumstances, Outcome } from "../../src/policy/circuit.ts"
import { afterOutcome, toHalfOpen } from "../../src/policy/circuit.ts"

export const well = healthy("g")

export const usual: Circumstances = { spread: 0, rateExceeded: false, ramping: false }

/** An endpoint that gets one outcome after the other. */
export const endpointWith = (overrides: Partial<CircuitSettings> = {}, begin: Health = well) => {
  const settings = { ...defaultCircuit, ...overrides }
  let health = begin
  const take = (outcome: Partial<Outcome>, circumstances: Partial<Circumstances> = {}) => {
    const given = { ok: false, permanent: false, at: 1_000, delivery: "d.hook", ...outcome }
    const consequence = afterOutcome(health, given, settings, { ...usual, ...circumstances })
    health = consequence.health
    return consequence
  }
  return {
    now: () => health,
    fails: (at: number, more: Partial<Outcome> = {}, circumstances: Partial<Circumstances> = {}) =>
      take({ at, status: 503, ...more }, circumstances),
    refuses: (at: number, more: Partial<Outcome> = {}) =>
      take({ at, permanent: true, status: 422, ...more }),
    succeeds: (
      at: number,
      more: Partial<Outcome> = {},
      circumstances: Partial<Circumstances> = {}
    ) => take({ at, ok: true, ...more }, circumstances),
    halfOpens: (at: number) => {
      health = toHalfOpen(health, at)
    }
  }
}
