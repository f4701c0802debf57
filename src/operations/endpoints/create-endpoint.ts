import { createHash } from "node:crypto"
import { Clock, Effect, Random } from "effect"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { initialOf, withoutSettings } from "../../domain/settings/setting.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import type { Asker } from "../caller.ts"
import { Contradiction } from "../refusals.ts"
import { addEndpoint } from "./add-endpoint.ts"
import { changedEndpoint } from "./endpoint-change.ts"
import type { EndpointName, NewEndpoint } from "./endpoint-settings.ts"
import { endpointLabel } from "./endpoint-settings.ts"
import { endpointView } from "./endpoint-view.ts"
import { type ChangedEndpointView, differences } from "./set-endpoint.ts"
import { maxTimeoutFor } from "./timeout-problems.ts"

/** Digits of an id that is made: 64 bits of chance, or of what a key comes to. */
const idDigits = 16

const halfId = Effect.map(Random.nextIntBetween(0, 2 ** 32), (number) =>
  number.toString(16).padStart(idDigits / 2, "0")
)

/** Makes the id of an endpoint. The same key makes the same one. */
const makeId = (key: string | undefined): Effect.Effect<string> =>
  Effect.map(
    key === undefined
      ? Effect.map(Effect.all([halfId, halfId]), (halves) => halves.join(""))
      : Effect.succeed(createHash("sha256").update(key).digest("hex").slice(0, idDigits)),
    (digits) => `ep_${digits}`
  )

/** Returns the endpoint that a key has made, if it is still as these settings make it. */
const madeBefore = Effect.fnUntraced(function* (name: EndpointName, settings: NewEndpoint) {
  const stored = yield* getEndpoint(name.tenant, name.id)
  const { endpoint } = stored
  const now = yield* Clock.currentTimeMillis
  const maxTimeoutMs = yield* maxTimeoutFor(name.tenant, settings)
  const { secret, ...others } = settings
  const reset = { ...withoutSettings(endpointSettings, endpoint), ...initialOf(endpointSettings) }
  // A new one has no URL, on which some defaults depend.
  const blank = { ...reset, url: "" }
  const again = yield* changedEndpoint(blank, others, now, { scopes: [], maxTimeoutMs })
  const hasSecret = secret === undefined || endpoint.secrets.some(({ value }) => value === secret)
  if (!hasSecret || differences(endpoint, again.endpoint).length > 0)
    return yield* new Contradiction({
      message: `the key has made ${endpointLabel(name)} already, whose settings are others: take another key, or change that endpoint`
    })
  return { ...endpointView(stored), cautions: [], changed: [] } satisfies ChangedEndpointView
})

/**
 * Adds an endpoint under an id that is made here. Fails as `addEndpoint`, and with Contradiction
 * where the key has made one whose settings are others by now.
 *
 * @param key makes repeating safe: the same key of a tenant stands for the same endpoint, for as
 *   long as that is there. (Default: each call adds one)
 */
export const createEndpoint = Effect.fnUntraced(function* (
  tenant: string,
  settings: NewEndpoint,
  { by }: Pick<Asker, "by">,
  key?: string
) {
  const name = { tenant, id: yield* makeId(key) }
  const add = Effect.map(addEndpoint(name, settings, by), (added) => ({
    endpoint: { ...added, changed: [] } satisfies ChangedEndpointView,
    isNew: true
  }))
  if (key === undefined) return yield* add
  const before = Effect.map(madeBefore(name, settings), (endpoint) => ({ endpoint, isNew: false }))
  return yield* Effect.catchTag(add, "EndpointExists", () => before).pipe(
    Effect.catchTag(
      "EndpointNotFound",
      () => new Contradiction({ message: "the key's endpoint was removed just now: try again" })
    )
  )
})
