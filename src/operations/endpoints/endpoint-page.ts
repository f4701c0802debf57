import { Effect } from "effect"
import { EndpointKeys } from "../../endpoints/endpoint-keys.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { readHealthUnder } from "./current-health.ts"
import type { EndpointHealthView } from "./endpoint-view.ts"
import { endpointHealthView } from "./endpoint-view.ts"

/**
 * Endpoints of a page that are read at the same time: what one after the other costs is mostly the
 * way to the broker and back.
 */
const concurrency = 100

/** A page of endpoints in the order of their keys, and the key after which the next one begins. */
export interface EndpointPage {
  readonly endpoints: ReadonlyArray<EndpointHealthView>
  readonly next: string | undefined
}

/** Which endpoints a page has. */
export interface EndpointPageQuery {
  /** (Default: all) */
  readonly tenant: string | undefined
  /** The key `<tenant>.<endpoint>` after which it begins. */
  readonly after: string | undefined
  readonly limit: number
}

const showOne = (key: string) => {
  const [tenant = "", id = ""] = key.split(".")
  return Effect.all([getEndpoint(tenant, id), readHealthUnder(tenant, id)], {
    concurrency: 2
  }).pipe(
    Effect.map(([stored, healthOf]) => [endpointHealthView(stored, healthOf(stored.endpoint))]),
    Effect.catchTags({
      EndpointNotFound: () => Effect.succeed([]),
      EndpointUnreadable: ({ message }) => Effect.as(Effect.logWarning(message), [])
    })
  )
}

/**
 * Reads a page of endpoints. Those that are removed meanwhile or whose configuration does not parse
 * are left out.
 */
export const pageEndpoints = Effect.fnUntraced(function* ({
  after,
  limit,
  tenant
}: EndpointPageQuery) {
  const { current } = yield* EndpointKeys
  const left = current().page(tenant, after, limit + 1)
  const page = left.slice(0, limit)
  const shown = yield* Effect.forEach(page, showOne, { concurrency })
  return {
    endpoints: shown.flat(),
    next: left.length > limit ? page.at(-1) : undefined
  } satisfies EndpointPage
})
