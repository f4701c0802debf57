import { Duration, Schema } from "effect"
import { PositiveDuration } from "./duration.ts"

/** Alerts about one endpoint. */
export const endpointAlerts = [
  "circuit-opened",
  "endpoint-disabled",
  "dead-letters",
  "success-low",
  "success-critical",
  "retries-high",
  "permanent-high",
  "attempts-high",
  "median-slow",
  "p99-slow"
] as const
/** Alerts about all endpoints of a tenant together. */
export const tenantAlerts = ["success-low", "success-critical"] as const
/** Alerts about the system as a whole. */
export const systemAlerts = ["waiting-growing", "circuits-open", "deliveries-missing"] as const

export const AlertName = Schema.Literals([...endpointAlerts, ...systemAlerts])
export type AlertName = typeof AlertName.Type

/** What an alert says: the same in the fact, in the list of what is raised, and to an operational endpoint. */
export const Alert = Schema.Struct({
  /** Of this raising: its clearing has the same. */
  id: Schema.String,
  name: AlertName,
  about: Schema.Literals(["endpoint", "tenant", "system"]),
  level: Schema.Literals(["warn", "critical"]),
  /** What was found when it was raised or cleared; absent where nothing was there to measure. */
  value: Schema.optionalKey(Schema.Number),
  threshold: Schema.Number,
  /** Of value and threshold. */
  unit: Schema.String,
  /** Over which the value was taken, ms. */
  windowMs: Schema.Number,
  /** ms since the epoch. */
  raisedAt: Schema.Number,
  /** Whom to tell: as the endpoint's configuration names them, else as is set for the tenant. */
  contact: Schema.optionalKey(Schema.String),
  failuresInRow: Schema.optionalKey(Schema.Int),
  lastStatus: Schema.optionalKey(Schema.Int),
  lastError: Schema.optionalKey(Schema.String)
})
export type Alert = typeof Alert.Type

/** Whom to tell about an endpoint or a tenant, on one line. */
export const Contact = Schema.String.check(
  Schema.makeFilter((text: string) =>
    /^\P{Cc}{1,200}$/u.test(text) ? undefined : "must be 1 to 200 characters on one line"
  )
)

const orOff = <S extends Schema.Top>(schema: S) =>
  Schema.optionalKey(Schema.Union([Schema.Literal("off"), schema]))
const percent = orOff(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 100 })))
const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))
/** A shorter one would hold next to nothing, and a longer one would seldom be full between restarts. */
const Window = PositiveDuration.check(
  Schema.makeFilter((window: Duration.Duration) =>
    Duration.toMillis(window) >= 1_000 && Duration.toMillis(window) <= 24 * 60 * 60_000
      ? undefined
      : "must be between 1 second and 1 day"
  )
)
const toggle = Schema.optionalKey(Schema.Literals(["on", "off"]))

const thresholds = {
  /** Deliveries that succeed, percent: fewer raise `success-low`. */
  successWarnPercent: percent,
  /** The same for `success-critical`. */
  successCriticalPercent: percent,
  /** Deliveries whose first attempt has to be repeated, percent. */
  retriesPercent: percent,
  /** Final answers that are a permanent failure, percent. */
  permanentPercent: percent,
  /** Attempts that a delivery took on average until it succeeded. */
  attemptsPerDelivery: orOff(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))),
  /** From the event to success, half of the deliveries. */
  medianTime: orOff(PositiveDuration),
  /** From the event to success, 99 of 100 deliveries. */
  p99Time: orOff(PositiveDuration),
  /** Dead letters within the window. */
  deadLetters: orOff(count),
  circuitOpened: toggle,
  endpointDisabled: toggle,
  /** Over which all of it is counted. */
  window: Schema.optionalKey(Window),
  /** Of fewer deliveries no share and no time is judged. */
  samples: Schema.optionalKey(count)
}

const systemThresholds = {
  /** Deliveries waiting, more than at the window's beginning. */
  waitingGrowth: orOff(count),
  /** Circuits open at the same time. */
  circuitsOpen: orOff(count),
  deliveriesMissing: toggle
}

/** When alerts are raised about an endpoint or a tenant: what is left out is as it is one level up. */
export const AlertSettings = Schema.Struct(thresholds)
export type AlertSettings = typeof AlertSettings.Type

/** The same for a tenant and its endpoints, and whom to tell about those that name nobody. */
export const TenantAlertSettings = Schema.Struct({
  ...thresholds,
  contact: Schema.optionalKey(Contact)
})
export type TenantAlertSettings = typeof TenantAlertSettings.Type

/** The same for the system, and for all tenants. */
export const SystemAlertSettings = Schema.Struct({ ...thresholds, ...systemThresholds })
export type SystemAlertSettings = typeof SystemAlertSettings.Type

/** An endpoint's choice: none at all, or thresholds of its own. */
export const AlertChoice = Schema.Union([Schema.Literal("off"), AlertSettings])
export type AlertChoice = typeof AlertChoice.Type

/** The same of a tenant. */
export const TenantAlertChoice = Schema.Union([Schema.Literal("off"), TenantAlertSettings])
export type TenantAlertChoice = typeof TenantAlertChoice.Type
