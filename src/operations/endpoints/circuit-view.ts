import { Duration, Schema } from "effect"
import { Circuit } from "../../domain/circuit.ts"
import { PositiveDuration } from "../../domain/duration.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import { circuitOf } from "../../domain/endpoint.ts"
import { CircuitState, Health } from "../../domain/health.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { isRamping } from "../../policy/circuit.ts"

const settings = Circuit.fields

/**
 * All settings of an endpoint's circuit, defaults filled in, and its state if that is known. Times
 * in ms since the epoch.
 */
export const CircuitView = Schema.Struct({
  state: Schema.optionalKey(CircuitState),
  since: Schema.optionalKey(Timestamp),
  /** When the next probe may be sent. Absent for a closed circuit. */
  nextProbeAt: Schema.optionalKey(Timestamp),
  /** Successful probes of a half-open circuit. */
  probesSucceeded: Schema.optionalKey(Schema.Int),
  /** The delivery of the latest probe. */
  lastProbe: Schema.optionalKey(Schema.String),
  /** Why it opened. */
  why: Schema.optionalKey(Schema.String),
  /** The circuit has closed, and deliveries come back gradually. */
  ramping: Schema.optionalKey(Schema.Literal(true)),
  failures: settings.failures.schema,
  rate: settings.rate.schema,
  coolDown: PositiveDuration,
  maxCoolDown: PositiveDuration,
  successes: settings.successes.schema,
  onOpen: settings.onOpen.schema,
  giveUpAfter: PositiveDuration,
  onGiveUp: settings.onGiveUp.schema,
  onGone: settings.onGone.schema,
  permanentFailures: settings.permanentFailures.schema
})
export type CircuitView = typeof CircuitView.Type

/** An endpoint's failures, and when it may be sent to. Times in ms since the epoch. */
export const HealthView = Schema.Struct({
  failuresInRow: Health.fields.failuresInRow,
  permanentInRow: Health.fields.permanentInRow,
  failingSince: Health.fields.failingSince,
  giveUpAt: Health.fields.giveUpAt,
  notBefore: Health.fields.notBefore,
  lastStatus: Health.fields.lastStatus,
  lastError: Health.fields.lastError
})
export type HealthView = typeof HealthView.Type

const stateOf = (health: Health): Partial<CircuitView> => {
  const { lastProbe, since, state, successes, until = 0, why } = health.circuit
  return {
    state,
    ...(since === 0 ? {} : { since }),
    ...(state === "closed" ? {} : { nextProbeAt: Math.max(until, health.notBefore ?? 0) }),
    ...(successes === undefined ? {} : { probesSucceeded: successes }),
    ...(lastProbe === undefined ? {} : { lastProbe }),
    ...(why === undefined ? {} : { why }),
    ...(isRamping(health) ? { ramping: true } : {})
  }
}

/** Returns an endpoint's circuit, with its state if its health is given. */
export const circuitView = (endpoint: Endpoint, health: Health | undefined): CircuitView => {
  const { coolDown, giveUpAfter, maxCoolDown, rate, ...rest } = circuitOf(endpoint)
  return {
    ...(health === undefined ? {} : stateOf(health)),
    ...rest,
    rate: rate === undefined ? "none" : { ...rate, over: Duration.millis(rate.over) },
    coolDown: Duration.millis(coolDown),
    maxCoolDown: Duration.millis(maxCoolDown),
    giveUpAfter: Duration.millis(giveUpAfter)
  }
}

/** Returns an endpoint's health without the state of its circuit. */
export const healthView = ({ circuit: _, generation: __, v: ___, ...rest }: Health): HealthView =>
  rest
