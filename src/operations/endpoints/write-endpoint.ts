import { Clock, Effect, Random, Schema } from "effect"
import type { EndpointName } from "../../domain/endpoint.ts"
import { Endpoint } from "../../domain/endpoint.ts"
import type { ExpectedRevision } from "../../domain/problem.ts"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { initialOf, namesOfChanged, withoutSettings } from "../../domain/settings/setting.ts"
import {
  changeEndpoint,
  EndpointChanged,
  getEndpoint,
  addEndpoint as store
} from "../../endpoints/endpoint-store.ts"
import type { Asker } from "../caller.ts"
import { CurrentOnce } from "../idempotency-key.ts"
import { withinQuota } from "../quota.ts"
import { cautions } from "./cautions.ts"
import { blankEndpoint, changedEndpoint, maxTimeoutFor, originCautions } from "./endpoint-change.ts"
import type { EndpointPatch, NewEndpoint } from "./endpoint-settings.ts"
import { EndpointView, endpointView } from "./endpoint-view.ts"

/** An endpoint that was added. */
export const AddedEndpoint = Schema.Struct({
  ...EndpointView.fields,
  secret: Schema.optionalKey(Schema.String).annotateKey({
    description: "The secret, if it was generated. It is not shown again without asking for it."
  }),
  cautions: Schema.Array(Schema.String).annotateKey({
    description: "Warnings about settings that are valid but seldom intended."
  })
})
export type AddedEndpoint = typeof AddedEndpoint.Type

/** Digits of an id that is made: 64 bits. */
const idDigits = 16

const halfId = Effect.map(Random.nextIntBetween(0, 2 ** 32), (number) =>
  number.toString(16).padStart(idDigits / 2, "0")
)
const makeDigits = Effect.map(Effect.all([halfId, halfId]), (halves) => halves.join(""))

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
  const blank = blankEndpoint(name, yield* makeDigits, now)
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

/** An endpoint after a change. Cautions are those that the change has brought. */
export const ChangedEndpointView = Schema.Struct({
  ...AddedEndpoint.fields,
  changed: Schema.Array(Schema.String).annotateKey({
    description: "The names of the settings that differ from before."
  })
})
export type ChangedEndpointView = typeof ChangedEndpointView.Type

const encode = Schema.encodeSync(Endpoint)

/** Returns the names of the settings that differ. */
export const differences = (before: Endpoint, after: Endpoint): ReadonlyArray<string> =>
  namesOfChanged(encode(before), encode(after)).filter((name) => name !== "updatedAt")

/** Returns an endpoint with all settings at their defaults, but with its secrets and state. */
const reset = (endpoint: Endpoint) => ({
  ...withoutSettings(endpointSettings, endpoint),
  ...initialOf(endpointSettings)
})

/**
 * Changes an endpoint that is there.
 *
 * @param replaces whether what is left out goes back to its default. All cautions are told then, not
 *   only those that the change has brought.
 */
const writeChange = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  patch: EndpointPatch,
  asker: Asker,
  expected: ExpectedRevision | undefined,
  replaces: boolean
) {
  const now = yield* Clock.currentTimeMillis
  const maxTimeoutMs = yield* maxTimeoutFor(tenant, patch)
  let made: string | undefined
  let changed: ReadonlyArray<string> = []
  let warnings: ReadonlyArray<string> = []
  const change = Effect.fnUntraced(function* (before: Endpoint) {
    const from = replaces ? reset(before) : before
    const after = yield* changedEndpoint(from, patch, now, { ...asker, maxTimeoutMs })
    made = after.made
    changed = differences(before, after.endpoint)
    const known = replaces ? [] : cautions(before)
    warnings = [
      ...cautions(after.endpoint).filter((caution) => !known.includes(caution)),
      ...originCautions(before, after.endpoint)
    ]
    return changed.length === 0 ? undefined : after.endpoint
  })
  const stored = yield* changeEndpoint(tenant, id, change, { by: asker.by, expected })
  return {
    ...endpointView(stored),
    ...(made === undefined ? {} : { secret: made }),
    cautions: warnings,
    changed
  } satisfies ChangedEndpointView
})

/**
 * Changes the given settings of an endpoint and keeps the others; where its URL leads to another
 * origin, header values only if the asker may see them. Fails with Invalid for settings that do not
 * go together, with EndpointNotFound if there is no such endpoint.
 *
 * @param expected the revisions that may be changed; fails with EndpointChanged for another.
 *   (Default: any)
 */
export const setEndpoint = (
  name: EndpointName,
  patch: EndpointPatch,
  asker: Asker,
  expected?: ExpectedRevision
) => writeChange(name, patch, asker, expected, false)

/**
 * Makes an endpoint be as its settings say, whether it is there or not. What the settings leave out
 * is at its default afterwards, but secrets and the state (disabled, paused) remain. Fails with
 * Invalid for settings that do not go together.
 *
 * @param expected the revisions that may be replaced, or "none" for an endpoint that must not be
 *   there; fails with EndpointChanged or EndpointExists. (Default: any)
 */
export const putEndpoint = Effect.fnUntraced(function* (
  name: EndpointName,
  settings: NewEndpoint,
  asker: Asker,
  expected?: ExpectedRevision | "none"
) {
  const add = Effect.map(addEndpoint(name, settings, asker.by), (added) => ({
    endpoint: { ...added, changed: [] } satisfies ChangedEndpointView,
    isNew: true
  }))
  if (expected === "none") return yield* add
  const replace = Effect.map(writeChange(name, settings, asker, expected, true), (endpoint) => ({
    endpoint,
    isNew: false
  }))
  return yield* replace.pipe(
    Effect.catchTag("EndpointNotFound", () =>
      expected === undefined
        ? // Another one may have added it in between.
          Effect.catchTag(add, "EndpointExists", () => replace)
        : Effect.fail(new EndpointChanged({ ...name, revision: 0 }))
    )
  )
})

/**
 * Adds an endpoint under an id that is made here. Fails as `addEndpoint`. Of what is carried out once
 * (`CurrentOnce`) the id is made: where it was added before, it is returned without its secret.
 */
export const createEndpoint = Effect.fnUntraced(function* (
  tenant: string,
  settings: NewEndpoint,
  { by }: Pick<Asker, "by">
) {
  const once = yield* CurrentOnce
  const digits = once === undefined ? yield* makeDigits : once.id.slice(0, idDigits)
  const name = { tenant, id: `ep_${digits}` }
  const added: ChangedEndpointView = yield* addEndpoint(name, settings, by).pipe(
    Effect.map((endpoint) => ({ ...endpoint, changed: [] })),
    Effect.catchTag("EndpointExists", (exists) =>
      once === undefined
        ? Effect.fail(exists)
        : getEndpoint(tenant, name.id).pipe(
            Effect.map((stored) => ({ ...endpointView(stored), cautions: [], changed: [] })),
            Effect.catchTag("EndpointNotFound", () => Effect.fail(exists))
          )
    )
  )
  return added
})
