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
  value: Schema.String.annotateKey({ description: "The secret." }),
  createdAt: Timestamp.annotateKey({ description: "When it was made." }),
  until: Schema.optionalKey(Timestamp).annotateKey({
    description: "Until when it is valid; absent for the present one."
  })
})
export type Secret = typeof Secret.Type

/** Why and since when (ms since the epoch) an endpoint is disabled or suspended. */
export const Stopped = Schema.Struct({
  at: Timestamp.annotateKey({ description: "Since when." }),
  reason: Schema.String.annotateKey({ description: "Why." }),
  by: Schema.String.annotateKey({ description: "Who did it." })
})
export type Stopped = typeof Stopped.Type

/**
 * Since when (ms since the epoch) an operator holds back an endpoint's deliveries, to be sent
 * later.
 */
export const Paused = Schema.Struct({
  at: Timestamp.annotateKey({ description: "Since when." }),
  by: Schema.String.annotateKey({ description: "Who did it." }),
  reason: Schema.optionalKey(Schema.String).annotateKey({ description: "Why." }),
  lacksUrl: Schema.optionalKey(Schema.Literal(true)).annotateKey({
    description:
      "The endpoint was made again and its URL is not known: it is not resumed before it has one."
  })
})
export type Paused = typeof Paused.Type

const remadeReason = "made again without "

/** The reason of the pause of an endpoint that was made again without what the history does not hold. */
export const remadeWithout = (flags: string): string =>
  `${remadeReason}${flags}: set them, then resume it`

/** True for an endpoint that was made again and still lacks something. */
export const isRemade = ({ reason }: Pick<Paused, "reason">): boolean =>
  reason?.startsWith(remadeReason) === true

/** An endpoint's configuration: the value under `<tenant>.<endpoint>` in the endpoints bucket. */
export const Endpoint = Schema.Struct({
  v: Schema.Literal(1).annotateKey({ description: "The version of the record." }),
  tenant: Token.annotateKey({ description: "The name of the tenant." }),
  id: Token.annotateKey({ description: "The id of the endpoint." }),
  generation: Schema.String.annotateKey({
    description:
      "Created each time an endpoint of this name is added, so that old deliveries do not go to a new endpoint."
  }),
  ...column(endpointSettings, "stored"),
  secrets: Schema.Array(Secret).annotateKey({
    description: "Newest first. Empty only for `sign: none`."
  }),
  disabled: Schema.optionalKey(Stopped).annotateKey({
    description: "It gets no events, and its waiting deliveries are dead-lettered."
  }),
  suspended: Schema.optionalKey(Stopped).annotateKey({
    description:
      "It was given up, and its deliveries wait until it is resumed or their deadlines pass."
  }),
  paused: Schema.optionalKey(Paused).annotateKey({
    description: "Since when its deliveries wait, and why."
  }),
  createdAt: Timestamp.annotateKey({ description: "When it was made." }),
  updatedAt: Timestamp.annotateKey({ description: "When it was changed last." })
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

/** Returns the endpoint's key in a subject that ends with tenant and endpoint. */
export const endpointKeyIn = (subject: string): string => subject.split(".").slice(-2).join(".")

/** Returns the tenant in an endpoint's key. */
export const tenantOfKey = (key: string): string => key.slice(0, key.indexOf("."))

/** Returns true if a key of the bucket has the form of an endpoint's key. */
export const isEndpointKey = (key: string): boolean => key.split(".").length === 2

/** The name of an endpoint: `<tenant>/<id>`. */
export const EndpointName = Schema.Struct({
  tenant: Token.annotateKey({ description: "The name of the tenant." }),
  id: Token.annotateKey({ description: "The id of the endpoint." })
})
export type EndpointName = typeof EndpointName.Type

/** Returns an endpoint's name for people: `acme/billing`. */
export const endpointLabel = ({ id, tenant }: EndpointName): string => `${tenant}/${id}`
