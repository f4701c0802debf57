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

const states: ReadonlySet<AlertName> = new Set<AlertName>([
  ...(["circuit-opened", "endpoint-disabled", "endpoint-suspended", "deliveries-missing"] as const),
  "test"
])

/** False for an alert about a state, whose value is 1 while it lasts and says nothing more. */
export const isMeasured = (name: AlertName): boolean => !states.has(name)

/** A delivery that was given up, with its attempts. */
export const DeadLetterAttempts = Schema.Struct({
  delivery: Schema.String.annotateKey({ description: "`<event id>.<endpoint id>`" }),
  type: Schema.optionalKey(Schema.String).annotateKey({ description: "The type of the event." }),
  reason: Schema.optionalKey(Schema.String).annotateKey({ description: "Why it was given up." }),
  /** The last ones, in order. */
  attempts: Schema.Array(
    Schema.Struct({
      attempt: Schema.Int.annotateKey({ description: "Its number in its round, from 1." }),
      /** ms since the epoch. */
      at: Timestamp.annotateKey({ description: "When it was made." }),
      durationMs: Schema.optionalKey(Schema.Number).annotateKey({
        description: "How long the request took, ms."
      }),
      status: Schema.optionalKey(Schema.Int).annotateKey({
        description: "The status of the answer."
      }),
      error: Schema.optionalKey(ErrorClass).annotateKey({ description: "The class of the error." })
    })
  ).annotateKey({ description: "The last ones, in order." })
})
export type DeadLetterAttempts = typeof DeadLetterAttempts.Type

/**
 * The content of an alert. It is the same in the fact, in the list of raised alerts, and in the
 * event sent to an operational endpoint.
 */
export const Alert = Schema.Struct({
  id: Schema.String.annotateKey({
    description:
      "Identifies one raising of the alert. An alert that replaces it, and the clearing, carry the same id."
  }),
  name: AlertName.annotateKey({ description: "The name of the alert." }),
  about: Schema.Literals(["endpoint", "tenant", "system"]).annotateKey({
    description: "What it is about."
  }),
  level: Schema.Literals(["warn", "critical"]).annotateKey({ description: "How bad it is." }),
  value: Schema.optionalKey(Schema.Number).annotateKey({
    description:
      "The value measured when the alert was raised or cleared. Absent if there was nothing to measure."
  }),
  threshold: Schema.Number.annotateKey({ description: "The threshold that it has passed." }),
  unit: Schema.String.annotateKey({ description: "The unit of value and threshold." }),
  windowMs: Schema.Number.annotateKey({
    description: "The window over which the value was measured, ms."
  }),
  raisedAt: Timestamp.annotateKey({ description: "When the first alert of this id was raised." }),
  replaces: Schema.optionalKey(AlertName).annotateKey({
    description: "The alert that was raised under this id until now."
  }),
  also: Schema.optionalKey(Schema.Array(AlertName)).annotateKey({
    description:
      "Alerts about the same endpoint or tenant that are not raised themselves, because this one is."
  }),
  contact: Schema.optionalKey(Schema.String).annotateKey({
    description: "Whom to notify: the endpoint's contact, or else the tenant's."
  }),
  failuresInRow: Schema.optionalKey(Schema.Int).annotateKey({
    description: "Attempts that failed in a row."
  }),
  lastStatus: Schema.optionalKey(Schema.Int).annotateKey({
    description: "The status of the last failure."
  }),
  status: Schema.optionalKey(Schema.String).annotateKey({
    description: "The status or class that an alert about answers in a row is about: `404`, `5xx`."
  }),
  lastError: Schema.optionalKey(Schema.String).annotateKey({
    description: "The error of the last failure."
  }),
  lastDeadLetter: Schema.optionalKey(DeadLetterAttempts).annotateKey({
    description: "In `dead-letters`: the delivery that was given up last when the alert was raised."
  })
})
export type Alert = typeof Alert.Type

/** An alert while it is raised. */
export const StandingAlert = Schema.Struct({
  ...Alert.fields,
  currentValue: Schema.optionalKey(Schema.Number).annotateKey({
    description:
      "The value measured last, once it differed from `value`. Renewed once a minute at most."
  })
})
export type StandingAlert = typeof StandingAlert.Type

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
const windowText = { description: "The time over which all values are counted." }
const toggle = Schema.optionalKey(Schema.Literals(["on", "off"]))

const thresholds = {
  successWarnPercent: percent.annotateKey({
    description: "A warning if fewer deliveries than this succeed, percent."
  }),
  successCriticalPercent: percent.annotateKey({
    description: "A critical alert if fewer deliveries than this succeed, percent."
  }),
  retriesPercent: percent.annotateKey({
    description:
      "A warning if the first attempt of more deliveries than this must be retried, percent."
  }),
  permanentPercent: percent.annotateKey({
    description: "A warning if more final answers than this are permanent failures, percent."
  }),
  attemptsPerDelivery: orOff(
    Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))
  ).annotateKey({
    description: "A warning if successful deliveries take more attempts than this on average."
  }),
  medianTime: orOff(PositiveDuration).annotateKey({
    description:
      "A warning if half of the deliveries take longer than this from the event to success."
  }),
  p99Time: orOff(PositiveDuration).annotateKey({
    description:
      "A warning if 1 of 100 deliveries takes longer than this from the event to success."
  }),
  deadLetters: orOff(count).annotateKey({
    description: "A warning at this many dead letters of one endpoint within the window."
  }),
  tenantDeadLetters: orOff(count).annotateKey({
    description:
      "A warning at this many dead letters of all endpoints of a tenant within the window."
  }),
  sourcesRefusing: orOff(count).annotateKey({
    description: "A warning at this many sources of a tenant that refuse every request."
  }),
  quarantined: orOff(count).annotateKey({
    description: "A warning at this many requests of a tenant in quarantine."
  }),
  providerLost: orOff(count).annotateKey({
    description:
      "A warning at this many events of a tenant's sources that had not come in when these were last reconciled."
  }),
  failuresInRow: orOff(count).annotateKey({
    description: "A warning at this many failed attempts in a row while the circuit is closed."
  }),
  circuitOpened: toggle.annotateKey({ description: "Whether an open circuit is an alert." }),
  endpointDisabled: toggle.annotateKey({ description: "Whether a disabled endpoint is an alert." }),
  endpointSuspended: toggle.annotateKey({
    description: "Whether a suspended endpoint is an alert."
  }),
  statusInARow: toggle.annotateKey({
    description:
      "Whether it is an alert if an endpoint answers with one status as many times in a row as `alert` of its retry policy says for that status."
  }),
  // The API's document shows the encoded side of what is transformed.
  window: Schema.flip(
    Schema.flip(Schema.optionalKey(Window).annotateKey(windowText)).annotateKey(windowText)
  ),
  samples: Schema.optionalKey(count).annotateKey({
    description: "With fewer deliveries than this, shares and times are not judged."
  })
}

const systemThresholds = {
  unroutedTime: orOff(PositiveDuration).annotateKey({
    description: "A critical alert if an event waits longer than this to be routed."
  }),
  waitingGrowth: orOff(count).annotateKey({
    description: "A warning if this many more deliveries wait than at the start of the window."
  }),
  circuitsOpen: orOff(count).annotateKey({
    description: "A critical alert at this many circuits that are open at the same time."
  }),
  systemDeadLetters: orOff(count).annotateKey({
    description:
      "A critical alert at this many dead letters of all tenants, each within its window."
  }),
  outboxTime: orOff(PositiveDuration).annotateKey({
    description: "A critical alert if rows of an outbox wait longer than this to be published."
  }),
  outboxSetAside: orOff(count).annotateKey({
    description: "A warning at this many rows of all outboxes that are set aside."
  }),
  deliveriesMissing: toggle.annotateKey({
    description: "Whether it is an alert that an audit finds something missing."
  }),
  diskFailed: toggle.annotateKey({
    description: "Whether it is an alert that the broker stores nothing more in a stream."
  })
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
  contact: Schema.optionalKey(Contact).annotateKey({
    description: "Who is named in alerts about endpoints that have no contact of their own."
  })
})
export type TenantAlertSettings = typeof TenantAlertSettings.Type

/** Thresholds of the system, and the defaults of all tenants. */
export const SystemAlertSettings = Schema.Struct({
  ...thresholds,
  ...systemThresholds,
  systemAlertsTo: Schema.optionalKey(Token).annotateKey({
    description:
      "The tenant whose operational endpoints get the alerts about the system. (Default: none)"
  })
})
export type SystemAlertSettings = typeof SystemAlertSettings.Type

/** An endpoint's setting: no alerts, or thresholds of its own. */
export const AlertChoice = Schema.Union([Schema.Literal("off"), AlertSettings])
export type AlertChoice = typeof AlertChoice.Type

/** A tenant's setting: no alerts, or thresholds of its own. */
export const TenantAlertChoice = Schema.Union([Schema.Literal("off"), TenantAlertSettings])
export type TenantAlertChoice = typeof TenantAlertChoice.Type
