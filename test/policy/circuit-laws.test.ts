import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import type { CircuitSettings } from "../../src/domain/circuit.ts"
import { defaultCircuit } from "../../src/domain/circuit.ts"
import { Health, isHealthy } from "../../src/domain/health.ts"
import type { Consequence } from "../../src/policy/circuit.ts"
import { afterOutcome, mayProbe, toHalfOpen } from "../../src/policy/circuit.ts"

import { endpointWith, well } from "./judged-endpoint.ts"

const minute = 60_000
const day = 24 * 60 * minute
const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Step = Schema.Struct({
  what: Schema.Literals(["ok", "transient", "transient", "permanent", "half-open"]),
  after: between(0, 20 * minute),
  lasted: between(0, minute),
  retryAfter: between(0, 10 * minute),
  spread: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 - 2 ** -53 })),
  rateExceeded: Schema.Boolean,
  ramping: Schema.Boolean,
  delivery: between(0, 3)
})
const Steps = Schema.Array(Step)
const Limits = Schema.Struct({
  failures: between(1, 6),
  successes: between(1, 4),
  coolDown: between(1, minute),
  longer: between(0, 15 * minute),
  giveUpAfter: between(1, 5 * day),
  permanentFailures: between(1, 20)
})

/** Runs the steps and shows what each made of which. */
const play = (
  steps: typeof Steps.Type,
  { longer, ...limits }: typeof Limits.Type,
  check: (step: {
    readonly before: Health
    readonly after: Consequence
    readonly settings: CircuitSettings
    readonly at: number
    readonly what: string
  }) => void
) => {
  const settings = { ...defaultCircuit, ...limits, maxCoolDown: limits.coolDown + longer }
  let health = well
  let at = 1_000_000
  for (const { after, delivery, lasted, retryAfter, what, ...circumstances } of steps) {
    at += after
    const before = health
    const consequence =
      what === "half-open"
        ? { health: mayProbe(health, at) ? toHalfOpen(health, at) : health, transitions: [] }
        : afterOutcome(
            health,
            {
              ok: what === "ok",
              permanent: what === "permanent",
              at,
              sentAt: at - lasted,
              delivery: `${delivery}.hook`,
              ...(what === "transient" && retryAfter > 5 * minute
                ? { retryAt: at + retryAfter }
                : {})
            },
            settings,
            circumstances
          )
    check({ before, after: consequence, settings, at, what })
    health = consequence.health
  }
}

describe("any sequence of outcomes", () => {
  it.prop("leaves a state that is possible", { steps: Steps, limits: Limits }, (given) =>
    play(given.steps, given.limits, ({ after: { health }, at, settings }) => {
      const { circuit, failingSince, failuresInRow, giveUpAt } = health
      assert.isAtMost(circuit.since, at)
      assert.strictEqual(failuresInRow > 0, failingSince !== undefined)
      assert.strictEqual(failingSince !== undefined, giveUpAt !== undefined)
      switch (circuit.state) {
        case "closed":
          assert.isUndefined(circuit.until)
          assert.isUndefined(circuit.successes)
          assert.isUndefined(circuit.lastProbe)
          assert.isBelow(failuresInRow, settings.failures)
          break
        case "open":
          assert.strictEqual(circuit.until, circuit.since + (circuit.coolDown ?? Number.NaN))
          assert.isAbove(failuresInRow, 0)
          assert.isDefined(circuit.why)
          break
        case "half-open":
          assert.isBelow(circuit.successes ?? Number.NaN, settings.successes)
          assert.isAtMost(circuit.until ?? Number.NaN, at)
      }
    })
  )

  it.prop("keeps the cool-down within its limits", { steps: Steps, limits: Limits }, (given) =>
    play(given.steps, given.limits, ({ after: { health }, settings }) => {
      const { coolDown } = health.circuit
      if (coolDown === undefined) return
      assert.isAtLeast(coolDown, settings.coolDown)
      assert.isAtMost(coolDown, settings.maxCoolDown)
      assert.isTrue(Number.isInteger(coolDown))
    })
  )

  it.prop("never shortens a Retry-After", { steps: Steps, limits: Limits }, (given) =>
    play(given.steps, given.limits, ({ after: { health }, at, before }) => {
      const { notBefore = 0 } = before
      if (notBefore > at) assert.isAtLeast(health.notBefore ?? 0, notBefore)
    })
  )

  it.prop(
    "tells of a circuit that opens or closes, and of nothing else",
    { steps: Steps, limits: Limits },
    (given) =>
      play(given.steps, given.limits, ({ after: { health, transitions }, before, what }) => {
        if (what === "half-open") return
        const opens = before.circuit.state !== "open" && health.circuit.state === "open"
        const closes = before.circuit.state === "half-open" && health.circuit.state === "closed"
        assert.deepStrictEqual(transitions, [
          ...(opens ? ["circuit-opened" as const] : []),
          ...(closes ? ["circuit-closed" as const] : [])
        ])
      })
  )

  it.prop(
    "can always be followed by what closes the circuit",
    { steps: Steps, limits: Limits },
    (given) => {
      let reached = { health: well, at: 0, settings: defaultCircuit }
      play(given.steps, given.limits, ({ after: { health }, at, settings }) => {
        reached = { health, at, settings }
      })
      const endpoint = endpointWith(reached.settings, reached.health)
      let at = reached.at + day
      endpoint.halfOpens(at)
      for (let n = 0; n < reached.settings.successes; n++) endpoint.succeeds(++at)
      endpoint.succeeds(++at)
      assert.isTrue(isHealthy(endpoint.now()))
    }
  )

  it.prop("is stored as it is", { steps: Steps, limits: Limits }, (given) =>
    play(given.steps, given.limits, ({ after: { health } }) => {
      const stored = JSON.stringify(Schema.encodeSync(Health)(health))
      const read = Schema.decodeUnknownResult(Schema.fromJsonString(Health))(stored)
      assert.deepStrictEqual(Result.getOrUndefined(read), health)
    })
  )
})
