import { Clock, Effect, Random, Schema } from "effect"
import { addEndpoint as store } from "../../endpoints/endpoint-store.ts"
import { cautions } from "./cautions.ts"
import { blankEndpoint, changedEndpoint } from "./endpoint-change.ts"
import { withinQuota } from "./endpoint-quota.ts"
import type { EndpointName, NewEndpoint } from "./endpoint-settings.ts"
import { EndpointView, endpointView } from "./endpoint-view.ts"
import { maxTimeoutFor } from "./timeout-problems.ts"

/** An endpoint that was added. */
export const AddedEndpoint = Schema.Struct({
  ...EndpointView.fields,
  /** The secret, if it was generated. It is not shown again without asking for it. */
  secret: Schema.optionalKey(Schema.String),
  /** Warnings about settings that are valid but seldom intended. */
  cautions: Schema.Array(Schema.String)
})
export type AddedEndpoint = typeof AddedEndpoint.Type

const hexDigits = 8

const makeGeneration = Effect.gen(function* () {
  const half = Effect.map(Random.nextIntBetween(0, 2 ** 32), (number) =>
    number.toString(16).padStart(hexDigits, "0")
  )
  return `${yield* half}${yield* half}`
})

/**
 * Adds an endpoint. Fails with Invalid for settings that do not go together, with EndpointExists if
 * there is one of that name, with QuotaReached if its tenant has as many as it may have.
 *
 * @param by who adds it, recorded in the history.
 */
export const addEndpoint = Effect.fnUntraced(function* (
  name: EndpointName,
  settings: NewEndpoint,
  by: string
) {
  const now = yield* Clock.currentTimeMillis
  const blank = blankEndpoint(name, yield* makeGeneration, now)
  const maxTimeoutMs = yield* maxTimeoutFor(name.tenant, settings)
  const allowed = { scopes: [], maxTimeoutMs }
  const { endpoint, made } = yield* changedEndpoint(blank, settings, now, allowed)
  const stored = yield* withinQuota(name, store(endpoint, by))
  return {
    ...endpointView(stored),
    ...(made === undefined ? {} : { secret: made }),
    cautions: cautions(endpoint)
  } satisfies AddedEndpoint
})
