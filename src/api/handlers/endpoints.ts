import { Duration, Effect, Schema } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { pageEndpoints } from "../../operations/endpoints/endpoint-page.ts"
import { showEndpoint } from "../../operations/endpoints/endpoint-queries.ts"
import type { EndpointName } from "../../operations/endpoints/endpoint-settings.ts"
import { endpointLabel } from "../../operations/endpoints/endpoint-settings.ts"
import {
  disableEndpoint,
  enableEndpoint,
  pauseEndpoint,
  removeEndpoint,
  resumeEndpoint
} from "../../operations/endpoints/endpoint-state.ts"
import { putEndpoint } from "../../operations/endpoints/put-endpoint.ts"
import { rotateSecret } from "../../operations/endpoints/rotate-secret.ts"
import { setEndpoint } from "../../operations/endpoints/set-endpoint.ts"
import { allTenants } from "../../operations/tokens/token.ts"
import { Caller } from "../access.ts"
import { withStatus } from "../answer.ts"
import { makeCursor } from "../cursor.ts"
import { Api } from "../definition/api.ts"
import { defaultLimit } from "../definition/common.ts"
import { changing, listing, reading } from "../failures.ts"
import { Conflict } from "../problems.ts"
import { invalidRequest } from "../validation.ts"

const defaultKeepOld = Duration.hours(24)

const cursor = makeCursor("endpoints", Schema.String)

/** Returns an answer with the revision as its ETag. */
const tagged = <A extends { readonly revision: number }>(body: A) =>
  HttpApiSchema.withHeaders({ body, headers: { etag: `"${body.revision}"` } })

/** Reads the revision in If-Match; undefined without one, or for `*`. */
const expectedIn = (ifMatch: string | undefined) => {
  if (ifMatch === undefined || ifMatch.trim() === "*") return Effect.succeed(undefined)
  const [, revision] = /^\s*"(\d{1,15})"\s*$/.exec(ifMatch) ?? []
  return revision === undefined
    ? Effect.fail(
        invalidRequest([
          {
            field: "if-match",
            message: 'must be the ETag of the endpoint, such as "42" with quotes'
          }
        ])
      )
    : Effect.succeed(Number(revision))
}

const created = 201

const enable = Effect.fnUntraced(function* (name: EndpointName, by: string) {
  const after = yield* enableEndpoint(name, by)
  if (after.suspended !== undefined)
    return yield* new Conflict({
      detail: `${endpointLabel(name)} is suspended, not disabled: resume it`
    })
  return after
})

/** Carries out the routes of endpoints. */
export const endpointsHandlers = HttpApiBuilder.group(Api, "endpoints", (handlers) =>
  handlers.handleAll({
    list: ({ params: { tenant }, query }) =>
      listing(
        Effect.gen(function* () {
          const after = yield* cursor.read(query.cursor)
          const { endpoints, next } = yield* pageEndpoints({
            tenant: tenant === allTenants ? undefined : tenant,
            after,
            limit: query.limit ?? defaultLimit
          })
          return { endpoints, ...(next === undefined ? {} : { next: cursor.write(next) }) }
        })
      ),
    get: ({ params }) => reading(Effect.map(showEndpoint(params), tagged)),
    put: ({ headers, params, payload }) =>
      changing(
        Effect.gen(function* () {
          const { by } = yield* Caller
          const expected =
            headers["if-none-match"] === "*" ? 0 : yield* expectedIn(headers["if-match"])
          const { endpoint, isNew } = yield* putEndpoint(params, payload, by, expected)
          if (isNew) yield* withStatus(created)
          return tagged(endpoint)
        })
      ),
    patch: ({ headers, params, payload }) =>
      changing(
        Effect.gen(function* () {
          const { by } = yield* Caller
          const expected = yield* expectedIn(headers["if-match"])
          return tagged(yield* setEndpoint(params, payload, by, expected))
        })
      ),
    remove: ({ headers, params }) =>
      changing(
        Effect.gen(function* () {
          const { by } = yield* Caller
          return yield* removeEndpoint(params, by, yield* expectedIn(headers["if-match"]))
        })
      ),
    enable: ({ params }) => changing(Effect.flatMap(Caller, ({ by }) => enable(params, by))),
    disable: ({ params, payload }) =>
      changing(Effect.flatMap(Caller, ({ by }) => disableEndpoint(params, payload ?? {}, by))),
    pause: ({ params, payload }) =>
      changing(Effect.flatMap(Caller, ({ by }) => pauseEndpoint(params, payload ?? {}, by))),
    resume: ({ params }) =>
      changing(Effect.flatMap(Caller, ({ by }) => resumeEndpoint(params, by))),
    rotate: ({ params, payload }) =>
      changing(
        Effect.flatMap(Caller, ({ by }) =>
          rotateSecret(params, { keepOld: defaultKeepOld, ...payload }, by)
        )
      ),
    secret: ({ params }) =>
      reading(
        Effect.map(showEndpoint(params, { reveal: true }), ({ headers, secrets }) => ({
          headers,
          secrets
        }))
      )
  })
)
