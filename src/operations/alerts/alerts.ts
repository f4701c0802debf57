import { Clock, Duration, Effect, Random, Schema } from "effect"
import { alertEventBody } from "../../alerts/alert-facts.ts"
import {
  listAlerts,
  listAlertsOf,
  type RaisedAlert,
  raisedIn,
  readThresholds,
  readThresholdsOf,
  type StoredThresholds,
  storeSystemThresholds,
  storeTenantThresholds,
  theSystem
} from "../../alerts/alert-store.ts"
import { thresholdsFrom } from "../../alerts/thresholds.ts"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import { readUser } from "../../broker/user.ts"
import {
  Alert,
  AlertSettings,
  StandingAlert,
  SystemAlertSettings,
  type TenantAlertChoice
} from "../../domain/alert.ts"
import { type Endpoint, isOperational } from "../../domain/endpoint.ts"
import type { Fact, ThresholdsChange } from "../../domain/fact.ts"
import type { ExpectedRevision } from "../../domain/problem.ts"
import { nobody } from "../../domain/token.ts"
import { alertType, TypeIndex } from "../../domain/type-filter.ts"
import { listEndpoints } from "../../endpoints/endpoint-store.ts"
import { ChangeUnrecorded } from "../../endpoints/settings-store.ts"
import { appendFact } from "../../history/facts.ts"
import type { AlertThresholds } from "../../policy/alert-thresholds.ts"
import { durationText } from "../../text/quantities.ts"

/** An alert that is raised. */
export const RaisedAlertView = Schema.Struct({
  ...StandingAlert.fields,
  tenant: Schema.optionalKey(Schema.String).annotateKey({
    description: "Absent if it is about the system."
  }),
  endpoint: Schema.optionalKey(Schema.String).annotateKey({
    description: "Absent if it is not about one endpoint."
  })
})
export type RaisedAlertView = typeof RaisedAlertView.Type

/** Returns what an alert is about: `the system`, a tenant, or an endpoint. */
export const raisedSubject = ({ about, endpoint = "", tenant = "" }: RaisedAlertView): string => {
  if (about === "system") return "the system"
  return about === "tenant" ? tenant : `${tenant}/${endpoint}`
}

/** Returns an alert with its tenant and endpoint. */
export const raisedView = ({ alert, endpoint, tenant }: RaisedAlert): RaisedAlertView => ({
  ...alert,
  ...(tenant === nobody ? {} : { tenant }),
  ...(endpoint === nobody ? {} : { endpoint })
})

/** Lists the alerts that are raised, or those about one tenant and its endpoints. */
export const listRaisedAlerts = (tenant?: string) =>
  Effect.map(tenant === undefined ? listAlerts() : listAlertsOf(tenant), (all) =>
    raisedIn(all).map(raisedView)
  )

const abouts: ReadonlyArray<string> = ["system", "tenant", "endpoint"] satisfies ReadonlyArray<
  Alert["about"]
>

/** Which alert it is, in the order of pages. */
export const AlertPosition = Schema.Tuple([Schema.Int, Schema.Int, Schema.String])
type AlertPosition = typeof AlertPosition.Type

const positionOf = ({ about, id, raisedAt }: RaisedAlertView): AlertPosition => [
  abouts.indexOf(about),
  raisedAt,
  id
]

/** Those about the system first, then about tenants, then about endpoints; of each the newest first. */
const inOrder = (a: AlertPosition, b: AlertPosition): number =>
  a[0] - b[0] || b[1] - a[1] || (a[2] < b[2] ? -1 : a[2] > b[2] ? 1 : 0)

/**
 * Returns a page of the alerts that are raised, and where the next one begins.
 *
 * @param after the last alert of the page before, which may be over by now.
 */
export const pageOfAlerts = (
  raised: ReadonlyArray<RaisedAlertView>,
  after: AlertPosition | undefined,
  limit: number
) => {
  const further = raised
    .filter((one) => after === undefined || inOrder(positionOf(one), after) > 0)
    .toSorted((a, b) => inOrder(positionOf(a), positionOf(b)))
  const alerts = further.slice(0, limit)
  const last = alerts.at(-1)
  const isMore = last !== undefined && further.length > limit
  return { alerts, total: raised.length, next: isMore ? positionOf(last) : undefined }
}

/** When alerts are raised about a tenant and its endpoints, or about the system and all others. */
export const ThresholdsView = Schema.Struct({
  tenant: Schema.optionalKey(Schema.String).annotateKey({ description: "Absent for the system." }),
  thresholds: Schema.Record(
    Schema.String,
    Schema.Union([Schema.Number, Schema.String])
  ).annotateKey({ description: "`off` and `on` for an alert as a whole; durations in words." }),
  contact: Schema.optionalKey(Schema.String),
  systemAlertsTo: Schema.optionalKey(Schema.String).annotateKey({
    description: "The tenant whose operational endpoints get the alerts about the system."
  }),
  set: Schema.Array(Schema.String).annotateKey({
    description: "The names of those that were set here."
  }),
  off: Schema.optionalKey(Schema.Literal(true)).annotateKey({
    description: "All alerts about the tenant and its endpoints were turned off."
  }),
  revision: Schema.Int.annotateKey({
    description: "The revision of what was set here; 0 where nothing was."
  })
})
export type ThresholdsView = typeof ThresholdsView.Type

const times: ReadonlySet<string> = new Set([
  "medianTime",
  "p99Time",
  "unroutedTime",
  "outboxTime",
  "window"
])
const toggles: ReadonlySet<string> = new Set([
  "circuitOpened",
  "endpointDisabled",
  "endpointSuspended",
  "statusInARow",
  "deliveriesMissing",
  "diskFailed"
])

const shownValue = (name: string, value: number | undefined): number | string => {
  if (value === undefined) return "off"
  if (toggles.has(name)) return "on"
  return times.has(name) ? durationText(Duration.millis(value)) : value
}

const shown = (thresholds: AlertThresholds, fields: ReadonlyArray<string>) => {
  const values = new Map(Object.entries(thresholds))
  return Object.fromEntries(fields.map((name) => [name, shownValue(name, values.get(name))]))
}

/** Returns the thresholds of a tenant, or those of the system. */
export const thresholdsView = (
  stored: StoredThresholds,
  tenant: string | undefined,
  revision: number
): ThresholdsView => {
  const thresholds = thresholdsFrom(stored)
  const systemAlertsTo = thresholds.systemAlertsTo()
  const { systemAlertsTo: _, ...fields } = SystemAlertSettings.fields
  if (tenant === undefined)
    return {
      thresholds: shown(thresholds.system(), Object.keys(fields)),
      ...(systemAlertsTo === undefined ? {} : { systemAlertsTo }),
      set: Object.keys(stored.system ?? {}),
      revision
    }
  const own = stored.tenants.get(tenant)
  const contact = thresholds.contact(tenant)
  return {
    tenant,
    thresholds: shown(thresholds.tenant(tenant), Object.keys(AlertSettings.fields)),
    ...(contact === undefined ? {} : { contact }),
    set: typeof own === "object" ? Object.keys(own) : [],
    ...(own === "off" ? { off: true } : {}),
    revision
  }
}

/** Shows when alerts are raised about a tenant and its endpoints, or about the system. */
export const showThresholds = (tenant?: string) =>
  Effect.map(readThresholdsOf(tenant), (stored) => thresholdsView(stored, tenant, stored.revision))

const changedKind = "thresholds-changed"

/** Appends a change to the history: only who makes it records it. */
const recordChange = Effect.fnUntraced(function* (
  tenant: string,
  by: string,
  change: ThresholdsChange | undefined
) {
  if (change === undefined) return
  const at = yield* Clock.currentTimeMillis
  const user = yield* readUser
  yield* appendFact(
    {
      ...{ v: 1, kind: changedKind, at, tenant, endpoint: nobody, by, user },
      thresholds: change
    },
    `${changedKind}.${tenant}.${change.revision}.${at}`
  ).pipe(Effect.mapError(({ message }) => new ChangeUnrecorded({ reason: message })))
})

/**
 * Replaces what was set for a tenant.
 *
 * @param choice undefined removes it.
 * @param by who changes it, recorded in the history.
 * @param expected the revisions that may be replaced; fails with OtherRevision for another. (Default:
 *   any)
 */
export const setTenantThresholds = Effect.fnUntraced(function* (
  tenant: string,
  choice: TenantAlertChoice | undefined,
  by: string,
  expected?: ExpectedRevision
) {
  yield* recordChange(tenant, by, yield* storeTenantThresholds(tenant, choice, expected))
  return yield* showThresholds(tenant)
})

/**
 * Replaces what was set for the system and for all tenants without thresholds of their own.
 *
 * @param settings undefined removes it.
 * @param by who changes it, recorded in the history.
 * @param expected as of a tenant's.
 */
export const setSystemThresholds = Effect.fnUntraced(function* (
  settings: SystemAlertSettings | undefined,
  by: string,
  expected?: ExpectedRevision
) {
  yield* recordChange(nobody, by, yield* storeSystemThresholds(settings, expected))
  return yield* showThresholds()
})

/** A test alert, and where it went. */
export const TestAlert = Schema.Struct({
  alert: Alert,
  subject: Schema.String.annotateKey({
    description: "Whoever subscribes to it has got the alert."
  }),
  tenant: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "The tenant whose operational endpoints get it; absent for the system where none is set."
  }),
  event: Schema.optionalKey(Schema.String).annotateKey({
    description: "The id of the event for these endpoints; absent where there are none."
  }),
  /** The operational endpoints that want it. */
  endpoints: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      held: Schema.optionalKey(Schema.Literals(["disabled", "suspended", "paused"])).annotateKey({
        description: "Why it does not get it now."
      })
    })
  )
})
export type TestAlert = typeof TestAlert.Type

const name = "test"
const type = alertType(name)

/**
 * Sends an alert that means nothing on the ways that alerts about a tenant or the system go: on the
 * failure subject, and as an event to the operational endpoints. It is not in the history, which
 * has only alerts that were raised; the event is, like all events.
 *
 * @param tenant undefined for the system.
 * @param by who asks for it.
 */
export const testAlert = Effect.fnUntraced(function* (
  tenant: string | undefined,
  by: string
): Effect.fn.Return<TestAlert, BrokerError | PublishError, Broker> {
  const { flush, names, publish, say } = yield* Broker
  const thresholds = thresholdsFrom(yield* readThresholds)
  const at = yield* Clock.currentTimeMillis
  const number = yield* Random.nextIntBetween(0, 36 ** 6)
  const contact = tenant === undefined ? undefined : thresholds.contact(tenant)
  const alert: Alert = {
    id: `alert_test_${at.toString(36)}${number.toString(36)}`,
    name,
    about: tenant === undefined ? "system" : "tenant",
    level: "warn",
    threshold: 0,
    unit: "",
    windowMs: 0,
    raisedAt: at,
    ...(contact === undefined ? {} : { contact })
  }
  const about = tenant === undefined ? theSystem : { tenant, endpoint: nobody }
  const fact: Fact = { v: 1, kind: "alert-raised", at, ...about, alert, by }
  const subject = names.subjects.failures(about.tenant, about.endpoint, fact.kind)
  say(subject, JSON.stringify(fact))
  yield* flush
  const told = tenant ?? thresholds.systemAlertsTo()
  if (told === undefined) return { alert, subject, endpoints: [] }
  const endpoints = yield* wanting(told)
  if (endpoints.length > 0)
    yield* publish(
      names.subjects.alertEvent(told, type),
      JSON.stringify(alertEventBody(fact, type)),
      [
        ["Nats-Msg-Id", `${told}.${alert.id}`],
        ["content-type", "application/json"]
      ]
    )
  return {
    ...{ alert, subject, tenant: told, endpoints },
    ...(endpoints.length === 0 ? {} : { event: `${told}.${alert.id}` })
  }
})

/** Returns whether any endpoint of a tenant gets alerts. */
export const hasOperational = (tenant: string) =>
  Effect.map(listEndpoints(tenant), (stored) =>
    stored.some(({ endpoint }) => isOperational(endpoint))
  )

/** The tenant's endpoints that want the event of a test. */
const wanting = Effect.fnUntraced(function* (tenant: string) {
  const index = new TypeIndex<Endpoint>()
  for (const { endpoint } of yield* listEndpoints(tenant)) index.add(endpoint.types, endpoint)
  return [...index.match(type)].map((endpoint) => {
    const held = heldBy(endpoint)
    return { id: endpoint.id, ...(held === undefined ? {} : { held }) }
  })
})

const heldBy = ({
  disabled,
  paused,
  suspended
}: Endpoint): "disabled" | "paused" | "suspended" | undefined => {
  if (disabled !== undefined) return "disabled"
  if (suspended !== undefined) return "suspended"
  return paused === undefined ? undefined : "paused"
}
