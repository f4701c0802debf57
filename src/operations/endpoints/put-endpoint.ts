import { Clock, Effect } from "effect"
import type { Endpoint } from "../../domain/endpoint.ts"
import { endpointSettings } from "../../domain/settings/endpoint-table.ts"
import { initialOf, withoutSettings } from "../../domain/settings/setting.ts"
import {
  changeEndpoint,
  EndpointChanged,
  type ExpectedRevision
} from "../../endpoints/endpoint-store.ts"
import type { Asker } from "../caller.ts"
import { addEndpoint } from "./add-endpoint.ts"
import { cautions } from "./cautions.ts"
import { changedEndpoint } from "./endpoint-change.ts"
import type { EndpointName, NewEndpoint } from "./endpoint-settings.ts"
import { endpointView } from "./endpoint-view.ts"
import { originCautions } from "./origin-change.ts"
import type { ChangedEndpointView } from "./set-endpoint.ts"
import { differences } from "./set-endpoint.ts"
import { maxTimeoutFor } from "./timeout-problems.ts"

/** Replaces all settings of an endpoint that is there. */
const replaceEndpoint = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  settings: NewEndpoint,
  asker: Asker,
  expected: ExpectedRevision | undefined
) {
  const now = yield* Clock.currentTimeMillis
  const maxTimeoutMs = yield* maxTimeoutFor(tenant, settings)
  let made: string | undefined
  let changed: ReadonlyArray<string> = []
  let moved: ReadonlyArray<string> = []
  const change = Effect.fnUntraced(function* (before: Endpoint) {
    const reset = { ...withoutSettings(endpointSettings, before), ...initialOf(endpointSettings) }
    const after = yield* changedEndpoint(reset, settings, now, { ...asker, maxTimeoutMs })
    made = after.made
    moved = originCautions(before, after.endpoint)
    changed = differences(before, after.endpoint)
    return changed.length === 0 ? undefined : after.endpoint
  })
  const stored = yield* changeEndpoint(tenant, id, change, { by: asker.by, expected })
  return {
    ...endpointView(stored),
    ...(made === undefined ? {} : { secret: made }),
    cautions: [...cautions(stored.endpoint), ...moved],
    changed
  } satisfies ChangedEndpointView
})

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
  const replace = Effect.map(replaceEndpoint(name, settings, asker, expected), (endpoint) => ({
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
