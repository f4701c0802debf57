import { Clock, Effect, Schema } from "effect"
import { Endpoint } from "../../domain/endpoint.ts"
import { namesOfChanged } from "../../domain/settings/setting.ts"
import { changeEndpoint, type ExpectedRevision } from "../../endpoints/endpoint-store.ts"
import type { Asker } from "../caller.ts"
import { AddedEndpoint } from "./add-endpoint.ts"
import { cautions } from "./cautions.ts"
import { changedEndpoint } from "./endpoint-change.ts"
import type { EndpointName, EndpointPatch } from "./endpoint-settings.ts"
import { endpointView } from "./endpoint-view.ts"
import { originCautions } from "./origin-change.ts"
import { maxTimeoutFor } from "./timeout-problems.ts"

/** An endpoint after a change. Cautions are those that the change has brought. */
export const ChangedEndpointView = Schema.Struct({
  ...AddedEndpoint.fields,
  /** The names of the settings that differ from before. */
  changed: Schema.Array(Schema.String)
})
export type ChangedEndpointView = typeof ChangedEndpointView.Type

const encode = Schema.encodeSync(Endpoint)

/** Returns the names of the settings that differ. */
export const differences = (before: Endpoint, after: Endpoint): ReadonlyArray<string> =>
  namesOfChanged(encode(before), encode(after)).filter((name) => name !== "updatedAt")

/**
 * Changes the given settings of an endpoint and keeps the others; where its URL leads to another
 * origin, header values only if the asker may see them. Fails with Invalid for settings that do not
 * go together, with EndpointNotFound if there is no such endpoint.
 *
 * @param expected the revisions that may be changed; fails with EndpointChanged for another.
 *   (Default: any)
 */
export const setEndpoint = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  patch: EndpointPatch,
  asker: Asker,
  expected?: ExpectedRevision
) {
  const now = yield* Clock.currentTimeMillis
  const maxTimeoutMs = yield* maxTimeoutFor(tenant, patch)
  let made: string | undefined
  let changed: ReadonlyArray<string> = []
  let warnings: ReadonlyArray<string> = []
  const change = Effect.fnUntraced(function* (before: Endpoint) {
    const after = yield* changedEndpoint(before, patch, now, { ...asker, maxTimeoutMs })
    made = after.made
    changed = differences(before, after.endpoint)
    const known = cautions(before)
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
