import { Clock, Effect, Random, Schema } from "effect"
import { alertEventBody } from "../../alerts/alert-facts.ts"
import { readThresholds, theSystem } from "../../alerts/alert-store.ts"
import { thresholdsFrom } from "../../alerts/thresholds.ts"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publisher.ts"
import { Alert } from "../../domain/alert.ts"
import type { Endpoint } from "../../domain/endpoint.ts"
import type { Fact } from "../../domain/fact.ts"
import { nobody } from "../../domain/token.ts"
import { alertType, TypeIndex } from "../../domain/type-filter.ts"
import { listEndpoints } from "../../endpoints/endpoint-store.ts"

/** A test alert, and where it went. */
export const TestAlert = Schema.Struct({
  alert: Alert,
  /** Whoever subscribes to it has got the alert. */
  subject: Schema.String,
  /** The tenant whose operational endpoints get it; absent for the system where none is set. */
  tenant: Schema.optionalKey(Schema.String),
  /** The id of the event for these endpoints; absent where there are none. */
  event: Schema.optionalKey(Schema.String),
  /** The operational endpoints that want it. */
  endpoints: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      /** Why it does not get it now. */
      held: Schema.optionalKey(Schema.Literals(["disabled", "suspended", "paused"]))
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
