import { Duration, Effect, Schema } from "effect"
import { endpointLabel } from "../../domain/endpoint.ts"
import { EndpointIdFilter, readIdFilter } from "../../domain/endpoint-id-filter.ts"
import { EndpointState } from "../../domain/health.ts"
import { metadataEntryPattern, readMetadataEntry } from "../../domain/metadata.ts"
import { invalid } from "../../domain/problem.ts"
import { several } from "../../projection/delivery-log.ts"
import { withoutCommands } from "../../text/plain-text.ts"
import { asCaller, Caller } from "../caller.ts"
import { operation, operationGroup, Unchanged, unchanged, withStatus } from "../operation.ts"
import {
  defaultLimit,
  EndpointId,
  makeCursor,
  next,
  pageQuery,
  Tenant,
  TenantOrAll,
  tenantOf,
  tenantPath
} from "../parameters.ts"
import {
  changing,
  expectedIn,
  expecting,
  ifMatch,
  ifNoneMatch,
  isKnown,
  onlyNew,
  tagged
} from "../preconditions.ts"
import { Contradiction } from "../refusals.ts"
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  RemovedEndpoint,
  removeEndpoint,
  resumeEndpoint
} from "./change-state.ts"
import { inPageTurn, pageEndpoints } from "./endpoint-page.ts"
import { revealSecrets, showEndpoint } from "./endpoint-queries.ts"
import {
  Changed,
  Detail,
  Listed,
  NewEndpointBody,
  PatchBody,
  ReasonBody,
  Rotated,
  RotationBody,
  Secrets,
  State
} from "./endpoint-schemas.ts"
import { rotateSecret } from "./endpoint-secrets.ts"
import { history } from "./endpoint-story.ts"
import { retryPolicies } from "./outlined-policy.ts"
import { createEndpoint, putEndpoint, setEndpoint } from "./write-endpoint.ts"

/** A change, whose cautions name no commands. */
const changed = <A extends { readonly revision: number; readonly cautions: ReadonlyArray<string> }>(
  endpoint: A,
  isNew = false,
  location?: string
) => tagged({ ...endpoint, cautions: endpoint.cautions.map(withoutCommands) }, isNew, location)

const defaultKeepOld = Duration.hours(24)

const pages = makeCursor("endpoints", Schema.String)

const Entry = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      readMetadataEntry(text) === undefined
        ? "must be a name and its value such as customer=42"
        : undefined,
    { toJsonSchema: () => ({ pattern: metadataEntryPattern, examples: ["customer=42"] }) }
  )
)

const filterQuery = {
  id: Schema.optionalKey(EndpointIdFilter).annotateKey({
    description: "The endpoint's id, or its beginning if it ends with `*`: `billing-*`."
  }),
  state: several(EndpointState).annotateKey({
    description:
      "Only those in this state, or in one of several: what keeps deliveries from the endpoint (`paused`, `suspended`, `disabled`), else the state of its circuit. It was read just before, and may have changed."
  }),
  metadata: several(Entry).annotateKey({
    description:
      "Only those with this entry of metadata, `name=value`; of several, all. A page looks at 200 endpoints at most: it may be shorter than `limit`, and yet have `next`."
  })
}

const name = { tenant: Tenant, id: EndpointId }
const one = `${tenantPath}/endpoints/:id` as const
const changes = ["not-found", "revision-mismatch", "conflict"] as const

const list = operation("list", "GET", `${tenantPath}/endpoints`, {
  scope: "endpoints:read",
  summary: "List endpoints, in the order of their names",
  params: { tenant: TenantOrAll },
  query: { ...pageQuery, ...filterQuery },
  output: Schema.Struct({
    endpoints: Schema.Array(Listed).annotateKey({ description: "The endpoints." }),
    next
  }).annotate({
    identifier: "EndpointList"
  }),
  run: ({ params, query: { cursor, id, limit = defaultLimit, metadata = [], state } }) =>
    Effect.gen(function* () {
      const after = yield* pages.read(cursor)
      const entries = metadata.flatMap((text) => {
        const entry = readMetadataEntry(text)
        return entry === undefined ? [] : [entry]
      })
      const ids = id === undefined ? undefined : readIdFilter(id)
      const query = {
        ...{ tenant: tenantOf(params.tenant), after, ids, limit },
        ...{ metadata: entries, states: state }
      }
      const { endpoints, next } = yield* inPageTurn(pageEndpoints(query))
      return { endpoints, ...pages.next(next) }
    })
})

const get = operation("get", "GET", one, {
  scope: "endpoints:read",
  summary: "Show an endpoint, its health and what waits for it",
  hasRevision: true,
  params: name,
  headers: ifNoneMatch,
  output: [Detail, unchanged],
  refusals: ["not-found"],
  within: ({ params }) => params.id,
  run: ({ headers, params }) =>
    Effect.gen(function* () {
      const shown = yield* showEndpoint(params)
      const { revision } = shown
      return (yield* isKnown(headers["if-none-match"], revision))
        ? new Unchanged({ revision })
        : tagged(shown)
    })
})

/** What is kept of an endpoint that was made, for repetitions of the request. */
const withoutSecret = (made: typeof Changed.Type): typeof Changed.Type => {
  const { secret: _, ...shown } = made
  return shown
}

const create = operation("create", "POST", `${tenantPath}/endpoints`, {
  scope: "endpoints:write",
  summary: "Add an endpoint under an id that is made for it",
  description:
    "Its path is in `Location`. A repetition with the same Idempotency-Key is answered without the secret that was made.",
  hasRevision: true,
  params: { tenant: Tenant },
  payload: NewEndpointBody,
  output: withStatus(Changed, 201),
  once: withoutSecret,
  refusals: ["conflict"],
  run: ({ params: { tenant }, payload }) =>
    Effect.gen(function* () {
      const endpoint = yield* createEndpoint(tenant, payload, yield* Caller)
      return changed(endpoint, true, `/v1/tenants/${tenant}/endpoints/${endpoint.id}`)
    })
})

const put = operation("put", "PUT", one, {
  scope: "endpoints:write",
  summary: "Add an endpoint, or replace its settings",
  description:
    "Settings that are left out go back to their defaults; secrets and the state remain. With If-Match, only the revision that you know is replaced.",
  hasRevision: true,
  params: name,
  headers: { ...ifMatch, ...onlyNew },
  payload: NewEndpointBody,
  output: [Changed, withStatus(Changed, 201)],
  refusals: changes,
  run: ({ headers, params, payload }) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const revisions = yield* expectedIn(headers["if-match"])
      const isOnlyNew = headers["if-none-match"] !== undefined
      if (isOnlyNew && revisions !== undefined)
        return yield* invalid("if-none-match", "and if-match cannot be combined")
      const expected = isOnlyNew ? "none" : revisions
      const { endpoint, isNew } = yield* putEndpoint(params, payload, caller, expected)
      return changed(endpoint, isNew)
    })
})

const patch = operation("patch", "PATCH", one, {
  scope: "endpoints:write",
  summary: "Change some settings of an endpoint, and leave the rest",
  description:
    "A URL of another origin drops the endpoint's own headers, unless the request gives them again or the token has the scope secrets:read: `cautions` names them. The signing secret stays until it is rotated.",
  hasRevision: true,
  params: name,
  headers: ifMatch,
  payload: PatchBody,
  output: Changed,
  refusals: changes,
  within: ({ params }) => params.id,
  run: ({ headers, params, payload }) =>
    Effect.map(
      expecting(headers, (caller, expected) => setEndpoint(params, payload, caller, expected)),
      (after) => changed(after)
    )
})

const remove = operation("remove", "DELETE", one, {
  scope: "endpoints:write",
  summary: "Remove an endpoint; its waiting deliveries become dead letters",
  params: name,
  headers: ifMatch,
  output: RemovedEndpoint.annotate({ identifier: "RemovedEndpoint" }),
  refusals: changes,
  run: ({ headers, params }) =>
    expecting(headers, ({ by }, expected) => removeEndpoint(params, by, expected))
})

const state = {
  ...{ params: name, headers: ifMatch, output: State, hasRevision: true },
  refusals: changes
} as const

const enable = operation("enable", "POST", `${one}/enable`, {
  scope: "endpoints:write",
  summary: "Put a disabled endpoint back to work",
  ...state,
  within: ({ params }) => params.id,
  run: ({ headers, params }) =>
    Effect.gen(function* () {
      const { by } = yield* Caller
      const after = yield* enableEndpoint(params, by, yield* expectedIn(headers["if-match"]))
      if (after.suspended !== undefined)
        return yield* new Contradiction({
          message: `${endpointLabel(params)} is suspended, not disabled: resume it`
        })
      return tagged(after)
    })
})

const disable = operation("disable", "POST", `${one}/disable`, {
  scope: "endpoints:write",
  summary: "Take an endpoint out of service; its waiting deliveries become dead letters",
  ...state,
  payload: [ReasonBody, Schema.Null],
  within: ({ params }) => params.id,
  run: ({ headers, params, payload }) =>
    changing(headers, (by, expected) => disableEndpoint(params, payload ?? {}, by, expected))
})

const pause = operation("pause", "POST", `${one}/pause`, {
  scope: "endpoints:write",
  summary: "Hold an endpoint's deliveries back until it is resumed",
  ...state,
  payload: [ReasonBody, Schema.Null],
  within: ({ params }) => params.id,
  run: ({ headers, params, payload }) =>
    changing(headers, (by, expected) => pauseEndpoint(params, payload ?? {}, by, expected))
})

const resume = operation("resume", "POST", `${one}/resume`, {
  scope: "endpoints:write",
  summary: "Resume the deliveries of a paused or suspended endpoint",
  ...state,
  within: ({ params }) => params.id,
  run: ({ headers, params }) =>
    changing(headers, (by, expected) => resumeEndpoint(params, by, expected))
})

const rotate = operation("rotate", "POST", `${one}/rotate`, {
  scope: "endpoints:write",
  summary: "Give an endpoint a new secret; the old ones stay valid for a while",
  hasRevision: true,
  params: name,
  headers: ifMatch,
  payload: [RotationBody, Schema.Null],
  output: Rotated,
  refusals: changes,
  within: ({ params }) => params.id,
  run: ({ headers, params, payload }) =>
    changing(headers, (by, expected) =>
      rotateSecret(params, { keepOld: defaultKeepOld, ...payload }, by, expected)
    )
})

const secret = operation("secret", "GET", `${one}/secret`, {
  scope: "secrets:read",
  summary: "Show an endpoint's secrets and the values of its headers",
  description: "The history records who was shown them (`secrets-revealed`).",
  params: name,
  output: Secrets,
  refusals: ["not-found"],
  within: ({ params }) => params.id,
  run: ({ params }) => asCaller((by) => revealSecrets(params, by))
})

/** Operations on endpoints. */
export const endpointOperations = operationGroup(
  "endpoints",
  "Where events of a tenant go.",
  list,
  create,
  get,
  history,
  retryPolicies,
  put,
  patch,
  remove,
  enable,
  disable,
  pause,
  resume,
  rotate,
  secret
)
