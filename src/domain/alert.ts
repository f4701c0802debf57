import { Schema } from "effect"
import { durationBetween, PositiveDuration } from "./duration.ts"
import { ErrorClass } from "./outcome.ts"
import { Timestamp } from "./timestamp.ts"
import { Token } from "./token.ts"

/** Alerts about one endpoint. */
export const endpointAlerts = [
  "circuit-opened",
  "endpoint-disabled",
  "endpoint-suspended",
  "dead-letters",
  "success-low",
  "success-critical",
  "retries-high",
  "permanent-high",
  "attempts-high",
  "median-slow",
  "p99-slow",
  /** Answers 404 again and again, as a policy's rule for 404 counts them. */
  "endpoint-not-found",
  /** The same with a rule for any other status. */
  "status-repeated",
  /** Failures in a row, of any kind, while its circuit is closed. */
  "failures-in-row"
] as const
/** Alerts about all endpoints of a tenant together. */
export const tenantAlerts = ["success-low", "success-critical", "tenant-dead-letters"] as const
/** Alerts about what comes in for a tenant. Each has a cause of its own. */
export const incomingAlerts = [
  /** Sources refuse all that comes. */
  "source-refusing",
  /** Something came in that is no event. */
  "quarantined",
  /** Providers list events that had not come in. */
  "provider-lost"
] as const
/** Alerts about the system as a whole. */
const systemAlerts = [
  /** An event waits to be routed for too long. */
  "events-unrouted",
  "waiting-growing",
  "circuits-open",
  "deliveries-missing",
  /** The broker stores nothing more in some stream. */
  "disk-failed",
  "system-dead-letters",
  /** Rows of an outbox wait for too long, or its relay is silent. */
  "outbox-stuck",
  /** Rows of an outbox can never be published as they are. */
  "outbox-set-aside"
] as const

export const AlertName = Schema.Literals([
  ...endpointAlerts,
  "tenant-dead-letters",
  ...incomingAlerts,
  ...systemAlerts,
  /** Sent on request: nothing is wrong. */
  "test"
])
export type AlertName = typeof AlertName.Type

/** A delivery that was given up, with its attempts. */
export const DeadLetterAttempts = Schema.Struct({
  /** `<event id>.<endpoint id>` */
  delivery: Schema.String,
  type: Schema.optionalKey(Schema.String),
  /** Why it was given up. */
  reason: Schema.optionalKey(Schema.String),
  /** The last ones, in order. */
  attempts: Schema.Array(
    Schema.Struct({
      /** Its number in its round, from 1. */
      attempt: Schema.Int,
      /** ms since the epoch. */
      at: Timestamp,
      durationMs: Schema.optionalKey(Schema.Number),
      status: Schema.optionalKey(Schema.Int),
      error: Schema.optionalKey(ErrorClass)
    })
  )
})
export type DeadLetterAttempts = typeof DeadLetterAttempts.Type

/**
 * The content of an alert. It is the same in the fact, in the list of raised alerts, and in the
 * event sent to an operational endpoint.
 */
export const Alert = Schema.Struct({
  /**
   * Identifies one raising of the alert. An alert that replaces it, and the clearing, carry the same
   * id.
   */
  id: Schema.String,
  name: AlertName,
  about: Schema.Literals(["endpoint", "tenant", "system"]),
  level: Schema.Literals(["warn", "critical"]),
  /**
   * The value measured when the alert was raised or cleared. Absent if there was nothing to
   * measure.
   */
  value: Schema.optionalKey(Schema.Number),
  threshold: Schema.Number,
  /** The unit of value and threshold. */
  unit: Schema.String,
  /** The window over which the value was measured, ms. */
  windowMs: Schema.Number,
  /** When the first alert of this id was raised, ms since the epoch. */
  raisedAt: Timestamp,
  /** The alert that was raised under this id until now. */
  replaces: Schema.optionalKey(AlertName),
  /** Alerts about the same endpoint or tenant that are not raised themselves, because this one is. */
  also: Schema.optionalKey(Schema.Array(AlertName)),
  /** Whom to notify: the endpoint's contact, or else the tenant's. */
  contact: Schema.optionalKey(Schema.String),
  failuresInRow: Schema.optionalKey(Schema.Int),
  lastStatus: Schema.optionalKey(Schema.Int),
  /** The status or class that an alert about answers in a row is about: `404`, `5xx`. */
  status: Schema.optionalKey(Schema.String),
  lastError: Schema.optionalKey(Schema.String),
  /** In `dead-letters`: the delivery that was given up last when the alert was raised. */
  lastDeadLetter: Schema.optionalKey(DeadLetterAttempts)
})
export type Alert = typeof Alert.Type

/** Whom to notify about an endpoint or a tenant, on one line. */
export const Contact = Schema.String.check(
  Schema.makeFilter((text: string) =>
    /^\P{Cc}{1,200}$/u.test(text) ? undefined : "must be 1 to 200 characters on one line"
  )
)

const orOff = <S extends Schema.Top>(schema: S) =>
  Schema.optionalKey(Schema.Union([Schema.Literal("off"), schema]))
const percent = orOff(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 100 })))
const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))
/**
 * A shorter window would hold almost no samples. A longer one would seldom fill between restarts.
 */
const Window = durationBetween([1_000, "1 second"], [24 * 60 * 60_000, "1 day"])
const toggle = Schema.optionalKey(Schema.Literals(["on", "off"]))

const thresholds = {
  /** Successful deliveries, percent. A lower share raises `success-low`. */
  successWarnPercent: percent,
  /** Successful deliveries, percent. A lower share raises `success-critical`. */
  successCriticalPercent: percent,
  /** Deliveries whose first attempt must be retried, percent. */
  retriesPercent: percent,
  /** Final answers that are permanent failures, percent. */
  permanentPercent: percent,
  /** Average number of attempts of a successful delivery. */
  attemptsPerDelivery: orOff(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))),
  /** Median time from the event to success. */
  medianTime: orOff(PositiveDuration),
  /** 99th percentile of the time from the event to success. */
  p99Time: orOff(PositiveDuration),
  /** Dead letters of one endpoint within the window. */
  deadLetters: orOff(count),
  /** Dead letters of all endpoints of a tenant within the window. */
  tenantDeadLetters: orOff(count),
  /** Sources of a tenant that refuse all that comes. */
  sourcesRefusing: orOff(count),
  /** Requests of a tenant in quarantine. */
  quarantined: orOff(count),
  /** Events of a tenant's sources that had not come in when these were last reconciled. */
  providerLost: orOff(count),
  /** Failed attempts in a row while the circuit is closed. */
  failuresInRow: orOff(count),
  circuitOpened: toggle,
  endpointDisabled: toggle,
  endpointSuspended: toggle,
  /** `endpoint-not-found` and `status-repeated`, whose thresholds are in retry policies. */
  statusInARow: toggle,
  /** The window over which all values are counted. */
  window: Schema.optionalKey(Window),
  /** With fewer deliveries than this, shares and times are not evaluated. */
  samples: Schema.optionalKey(count)
}

const systemThresholds = {
  /** Time that the oldest event has waited to be routed. */
  unroutedTime: orOff(PositiveDuration),
  /** Growth of the number of waiting deliveries since the start of the window. */
  waitingGrowth: orOff(count),
  /** Circuits open at the same time. */
  circuitsOpen: orOff(count),
  /** Dead letters of all tenants, each within its own window. */
  systemDeadLetters: orOff(count),
  /** Time that rows of an outbox wait to be published. */
  outboxTime: orOff(PositiveDuration),
  /** Rows of all outboxes that are set aside. */
  outboxSetAside: orOff(count),
  deliveriesMissing: toggle,
  diskFailed: toggle
}

/**
 * Thresholds for the alerts about an endpoint or a tenant. A setting that is left out is inherited
 * from the level above.
 */
export const AlertSettings = Schema.Struct(thresholds).annotate({
  identifier: "AlertThresholds",
  description: "Thresholds for alerts. One that is left out is that of the level above."
})
export type AlertSettings = typeof AlertSettings.Type

/** Thresholds of a tenant and its endpoints, and the contact for endpoints without their own. */
export const TenantAlertSettings = Schema.Struct({
  ...thresholds,
  contact: Schema.optionalKey(Contact)
})
export type TenantAlertSettings = typeof TenantAlertSettings.Type

/** Thresholds of the system, and the defaults of all tenants. */
export const SystemAlertSettings = Schema.Struct({
  ...thresholds,
  ...systemThresholds,
  /** The tenant whose operational endpoints get the alerts about the system. (Default: none) */
  systemAlertsTo: Schema.optionalKey(Token)
})
export type SystemAlertSettings = typeof SystemAlertSettings.Type

/** An endpoint's setting: no alerts, or thresholds of its own. */
export const AlertChoice = Schema.Union([Schema.Literal("off"), AlertSettings])
export type AlertChoice = typeof AlertChoice.Type

/** A tenant's setting: no alerts, or thresholds of its own. */
export const TenantAlertChoice = Schema.Union([Schema.Literal("off"), TenantAlertSettings])
export type TenantAlertChoice = typeof TenantAlertChoice.Type
