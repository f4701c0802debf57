import { Effect } from "effect"
import { getEndpoint } from "../endpoints/endpoint-store.ts"
import { forwardedTo } from "../endpoints/inherited-settings.ts"
import { windowsOf } from "../endpoints/live-endpoint.ts"
import { readSettingsInForce } from "../endpoints/settings-store.ts"
import type { RoundTarget } from "./round.ts"

/** Why an endpoint accepts no further rounds. */
export type Unfit = "endpoint-removed" | "endpoint-disabled" | "endpoint-unreadable"

const noWindows = { window: 0, windows: undefined }

/** Reads the endpoint, and why it accepts nothing, if so. */
export const readTarget = Effect.fnUntraced(function* (tenant: string, endpoint: string) {
  const unfit = (why: Unfit) => ({
    target: {
      ...{ tenant, endpoint, generation: "none", revision: 0, forwards: [] },
      ...noWindows
    } satisfies RoundTarget,
    unfit: why
  })
  const settings = yield* readSettingsInForce(tenant)
  return yield* getEndpoint(tenant, endpoint).pipe(
    Effect.map(({ endpoint: config, revision }) => ({
      target: {
        tenant,
        endpoint,
        generation: config.generation,
        revision,
        ...windowsOf(config),
        forwards: forwardedTo(config, settings)
      } satisfies RoundTarget,
      unfit: config.disabled === undefined ? undefined : ("endpoint-disabled" as const)
    })),
    Effect.catchTags({
      EndpointNotFound: () => Effect.succeed(unfit("endpoint-removed")),
      EndpointUnreadable: () => Effect.succeed(unfit("endpoint-unreadable"))
    })
  )
})
