import { Schema } from "effect"
import { Alert } from "../../domain/alert.ts"
import { PositiveDuration } from "../../domain/duration.ts"
import { Endpoint, Secret } from "../../domain/endpoint.ts"
import type { Health } from "../../domain/health.ts"
import { endpointSettings, mask } from "../../domain/settings/endpoint-table.ts"
import { maskedOf } from "../../domain/settings/setting.ts"
import type { StoredEndpoint } from "../../endpoints/endpoint-store.ts"
import { ActivityView } from "./activity-view.ts"
import { CircuitView, circuitView, HealthView, healthView } from "./circuit-view.ts"
import { publicKey } from "./endpoint-secrets.ts"

const { fields } = Endpoint

/** An endpoint's configuration. Secrets and the values of headers may be masked. */
export const EndpointView = Schema.Struct({
  ...fields,
  circuit: CircuitView,
  headers: Schema.Record(Schema.String, Schema.String),
  secrets: Schema.Array(Secret),
  /** With which receivers verify, if the scheme has one. */
  publicKey: Schema.optionalKey(Schema.String),
  /** The revision in the endpoints bucket. */
  revision: Schema.Int
})
export type EndpointView = typeof EndpointView.Type

/** An endpoint's configuration and its health. */
export const EndpointHealthView = Schema.Struct({ ...EndpointView.fields, health: HealthView })
export type EndpointHealthView = typeof EndpointHealthView.Type

/** An endpoint in a list: its configuration and how it fares. */
export const ListedEndpoint = Schema.Struct({
  ...EndpointHealthView.fields,
  ...ActivityView.fields
})
export type ListedEndpoint = typeof ListedEndpoint.Type

/** An endpoint, and the alerts that are raised about it. */
export const EndpointDetail = Schema.Struct({
  ...ListedEndpoint.fields,
  /** Headers of the publisher that it gets: its tenant's, the system's, and its own. */
  forwards: Schema.Array(Schema.String),
  /** The host whose requests are capped over several endpoints. Absent without a cap. */
  sharedHost: Schema.optionalKey(
    Schema.Struct({
      host: Schema.String,
      /** Concurrent requests of all endpoints of the tenant. */
      tenantCap: Schema.optionalKey(Schema.Int),
      /** The same of all endpoints of all tenants. */
      systemCap: Schema.optionalKey(Schema.Int)
    })
  ),
  /** The longest time-out that counts, where one of its own or of its policies is longer. */
  timeoutsCutTo: Schema.optionalKey(PositiveDuration),
  raised: Schema.Array(Alert)
})
export type EndpointDetail = typeof EndpointDetail.Type

/** Returns an endpoint's configuration; secrets and values of headers only with `reveal`. */
export const endpointView = (
  { endpoint, revision }: StoredEndpoint,
  reveal = false,
  health?: Health
): EndpointView => {
  const { secrets } = endpoint
  const key = publicKey(endpoint)
  return {
    ...endpoint,
    ...(reveal ? {} : maskedOf(endpointSettings, endpoint)),
    circuit: circuitView(endpoint, health),
    secrets: secrets.map((secret) => (reveal ? secret : { ...secret, value: mask })),
    ...(key === undefined ? {} : { publicKey: key }),
    revision
  }
}

/** Returns an endpoint's configuration and its health. */
export const endpointHealthView = (
  stored: StoredEndpoint,
  health: Health,
  reveal = false
): EndpointHealthView => ({
  ...endpointView(stored, reveal, health),
  health: healthView(health)
})
