import { Context, Effect, Option } from "effect"
import { readMayBeIn } from "../../delivery/introspection/survey-endpoints.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import type { IdFilter } from "../../domain/endpoint-id-filter.ts"
import { type EndpointState, endpointStateOf, type Health } from "../../domain/health.ts"
import { hasMetadata, type MetadataEntry } from "../../domain/metadata.ts"
import { EndpointKeys } from "../../endpoints/endpoint-keys.ts"
import { getEndpoint, type StoredEndpoint } from "../../endpoints/endpoint-store.ts"
import { Busy } from "../caller.ts"
import { inTenantTurn, TenantTurns } from "../tenant-turns.ts"
import { readHealthUnder } from "./endpoint-queries.ts"
import { type EndpointHealthView, endpointHealthView } from "./endpoint-view.ts"

/**
 * Pages that are read at the same time, each of which asks the broker some hundred times: four of one
 * tenant that asks alone, and one is always left for the next.
 */
const maxPages = 8
/** Pages of one tenant that wait for their turn. */
const maxWaiting = 64
/**
 * Whose page of endpoints is read next. Without turns, hundreds of pages of one tenant are before
 * whatever others ask the broker.
 */
export class PageTurns extends Context.Service<PageTurns, TenantTurns>()(
  "petrel/operations/PageTurns"
) {
  static readonly make = () => PageTurns.of(new TenantTurns(maxPages, maxWaiting))
}

/**
 * Reads a page for a caller of the API in its tenant's turn. Fails with Busy where too many of its
 * pages wait. The command line, which reads for itself, waits for nobody.
 */
export const inPageTurn = <A, E, R>(page: Effect.Effect<A, E, R>): Effect.Effect<A, Busy | E, R> =>
  Effect.flatMap(
    Effect.serviceOption(PageTurns),
    Option.match({
      onNone: (): Effect.Effect<A, Busy | E, R> => page,
      onSome: (turns) =>
        inTenantTurn(page, turns, {
          bound: "pages",
          why: `${maxWaiting} pages of endpoints wait for their turn: ask for one after the other`
        })
    })
  )

/**
 * Endpoints of a page that are read at the same time: what one after the other costs is mostly the
 * way to the broker and back.
 */
const concurrency = 100

/** Endpoints that a page looks at which is narrowed, however few of them it finds. */
const maxSearched = 200

/** A page of endpoints in the order of their keys, and the key after which the next one begins. */
interface EndpointPage {
  readonly endpoints: ReadonlyArray<EndpointHealthView>
  readonly next: string | undefined
}

/** Which endpoints a page has. */
interface EndpointPageQuery {
  /** (Default: all) */
  readonly tenant: string | undefined
  /** The key `<tenant>.<endpoint>` after which it begins. */
  readonly after: string | undefined
  readonly limit: number
  /** Only those with these ids. (Default: any) */
  readonly ids?: IdFilter | undefined
  /** Only those whose metadata have all of these. (Default: all endpoints) */
  readonly metadata?: ReadonlyArray<MetadataEntry>
  /** Only those in one of these states. (Default: in any) */
  readonly states?: ReadonlyArray<EndpointState> | undefined
}

/**
 * Within this time the states of 100,000 endpoints that nobody has read yet are mostly known, ms. A
 * page of the console waits no longer than 20 s for an answer, and is to be told why there is none.
 */
const statesPatienceMs = 15_000

/** Returns what tells whether an endpoint may be in one of some states. */
const mayBeIn = Effect.fnUntraced(function* (states: ReadonlyArray<EndpointState> | undefined) {
  if (states === undefined) return undefined
  const read = yield* Effect.timeoutOption(readMayBeIn(states), statesPatienceMs)
  if (Option.isSome(read)) return read.value
  return yield* new Busy({
    message: "the endpoints are still being counted: ask again in a few seconds",
    retryAfter: 5
  })
})

/** Reads an endpoint; nothing of one that is gone or unreadable. */
const readOne = (key: string) => {
  const [tenant = "", id = ""] = key.split(".")
  return getEndpoint(tenant, id).pipe(
    Effect.map((stored) => [stored]),
    Effect.catchTags({
      EndpointNotFound: () => Effect.succeed([]),
      EndpointUnreadable: ({ message }) => Effect.as(Effect.logWarning(message), [])
    })
  )
}

/** Returns an endpoint as it is shown; nothing of one that is in none of the states now. */
const shown = (
  stored: StoredEndpoint,
  health: Health,
  states: ReadonlyArray<EndpointState> | undefined
): ReadonlyArray<EndpointHealthView> =>
  (states?.includes(endpointStateOf(stored.endpoint, health.circuit.state)) ?? true)
    ? [endpointHealthView(stored, health)]
    : []

const withHealth = (stored: StoredEndpoint, states: ReadonlyArray<EndpointState> | undefined) => {
  const { endpoint } = stored
  return Effect.map(readHealthUnder(endpoint.tenant, endpoint.id), (healthOf) =>
    shown(stored, healthOf(endpoint), states)
  )
}

const showOne = (key: string, states: ReadonlyArray<EndpointState> | undefined) => {
  const [tenant = "", id = ""] = key.split(".")
  return Effect.map(
    Effect.all([readOne(key), readHealthUnder(tenant, id)], { concurrency: 2 }),
    ([found, healthOf]) =>
      found.flatMap((stored) => shown(stored, healthOf(stored.endpoint), states))
  )
}

/** Finds the endpoints of a narrowed page: it may be shorter than asked for, and yet have a next one. */
const searchPage = Effect.fnUntraced(function* (
  keys: ReadonlyArray<string>,
  limit: number,
  metadata: ReadonlyArray<MetadataEntry>,
  states: ReadonlyArray<EndpointState> | undefined
) {
  const searched = keys.slice(0, maxSearched)
  const read = yield* Effect.forEach(searched, readOne, { concurrency })
  const found = read
    .flat()
    .filter(({ endpoint }) => hasMetadata(endpoint.metadata, metadata))
    .slice(0, limit)
  const last = found.length < limit ? undefined : found.at(-1)?.endpoint
  const after = last === undefined ? searched.at(-1) : endpointKey(last.tenant, last.id)
  const views = yield* Effect.forEach(found, (one) => withHealth(one, states), { concurrency })
  return {
    endpoints: views.flat(),
    next: after === keys.at(-1) ? undefined : after
  } satisfies EndpointPage
})

/**
 * Reads a page of endpoints. Those that are removed meanwhile, whose configuration does not parse, or
 * that are not in a state that was asked for are left out: the page is shorter then.
 */
export const pageEndpoints = Effect.fnUntraced(function* ({
  after,
  ids,
  limit,
  metadata = [],
  states,
  tenant
}: EndpointPageQuery) {
  const { current } = yield* EndpointKeys
  const isWanted = yield* mayBeIn(states)
  const keys = (most: number) => current().page(tenant, after, most, ids, isWanted)
  if (metadata.length > 0) return yield* searchPage(keys(maxSearched + 1), limit, metadata, states)
  const left = keys(limit + 1)
  const page = left.slice(0, limit)
  const views = yield* Effect.forEach(page, (key) => showOne(key, states), { concurrency })
  return {
    endpoints: views.flat(),
    next: left.length > limit ? page.at(-1) : undefined
  } satisfies EndpointPage
})
