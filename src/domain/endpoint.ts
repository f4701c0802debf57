import { Schema } from "effect"
import { type CircuitSettings, circuitSettings } from "./circuit.ts"
import { endpointSettings } from "./settings/endpoint-table.ts"
import { column } from "./settings/setting.ts"
import { Timestamp } from "./timestamp.ts"
import { Token } from "./token.ts"
import { isOwnType } from "./type-filter.ts"

/**
 * A signing secret. A rotation sets `until` (ms since the epoch) on the secret that it replaces.
 */
export const Secret = Schema.Struct({
  value: Schema.String,
  createdAt: Timestamp,
  until: Schema.optionalKey(Timestamp)
})
export type Secret = typeof Secret.Type

/** Why and since when (ms since the epoch) an endpoint is disabled or suspended. */
export const Stopped = Schema.Struct({
  at: Timestamp,
  reason: Schema.String,
  by: Schema.String
})
export type Stopped = typeof Stopped.Type

/**
 * Since when (ms since the epoch) an operator holds back an endpoint's deliveries, to be sent
 * later.
 */
export const Paused = Schema.Struct({
  at: Timestamp,
  by: Schema.String,
  reason: Schema.optionalKey(Schema.String),
  /** The endpoint was made again and nobody knows its URL: it is not resumed before it has one. */
  lacksUrl: Schema.optionalKey(Schema.Literal(true))
})
export type Paused = typeof Paused.Type

/** An endpoint's configuration: the value under `<tenant>.<endpoint>` in the endpoints bucket. */
export const Endpoint = Schema.Struct({
  v: Schema.Literal(1),
  tenant: Token,
  id: Token,
  /**
   * Created each time an endpoint of this name is added, so that old deliveries do not go to a new
   * endpoint.
   */
  generation: Schema.String,
  ...column(endpointSettings, "stored"),
  /** Newest first. Empty only for `sign: none`. */
  secrets: Schema.Array(Secret),
  /** It gets no events, and its waiting deliveries are dead-lettered. */
  disabled: Schema.optionalKey(Stopped),
  /** It was given up, and its deliveries wait until it is resumed or their deadlines pass. */
  suspended: Schema.optionalKey(Stopped),
  paused: Schema.optionalKey(Paused),
  createdAt: Timestamp,
  updatedAt: Timestamp
})
export type Endpoint = typeof Endpoint.Type
export type EndpointJson = typeof Endpoint.Encoded

/**
 * Returns true for an endpoint that receives its tenant's alerts. Alerts about such an endpoint
 * produce no event.
 */
export const isOperational = ({ types }: Pick<Endpoint, "types">): boolean => types.some(isOwnType)

/** Returns true for an endpoint that gets alerts, and nothing else. */
export const getsOnlyAlerts = ({ types }: Pick<Endpoint, "types">): boolean =>
  types.every(isOwnType)

/** Returns when the endpoint's circuit opens and closes, and when the endpoint is disabled. */
export const circuitOf = ({ circuit }: Pick<Endpoint, "circuit">): CircuitSettings =>
  circuitSettings(circuit)

/** Returns true for an endpoint whose deliveries wait until it is resumed. */
export const isHeldBack = ({
  paused,
  suspended
}: Pick<Endpoint, "paused" | "suspended">): boolean =>
  paused !== undefined || suspended !== undefined

/** Returns the endpoint's key in its bucket, `<tenant>.<endpoint>`. */
export const endpointKey = (tenant: string, id: string): string => `${tenant}.${id}`

/** Returns the tenant in an endpoint's key. */
export const tenantOfKey = (key: string): string => key.slice(0, key.indexOf("."))

/** Returns true if a key of the bucket has the form of an endpoint's key. */
export const isEndpointKey = (key: string): boolean => key.split(".").length === 2

/** The name of an endpoint: `<tenant>/<id>`. */
export const EndpointName = Schema.Struct({ tenant: Token, id: Token })
export type EndpointName = typeof EndpointName.Type

/** Returns an endpoint's name for people: `acme/billing`. */
export const endpointLabel = ({ id, tenant }: EndpointName): string => `${tenant}/${id}`
