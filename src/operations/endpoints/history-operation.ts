import { Effect, Schema } from "effect"
import { makeCursor } from "../cursor.ts"
import { readingHistory } from "../history/history-readings.ts"
import { operation } from "../operation.ts"
import { defaultLimit, EndpointId, next, pageQuery, Tenant, tenantPath } from "../parameters.ts"
import { PagedStep, pageHistory, StepPosition } from "./endpoint-story.ts"

const pages = makeCursor("endpoint-history", StepPosition)

/** Shows the changes of an endpoint. */
export const history = operation("history", "GET", `${tenantPath}/endpoints/:id/history`, {
  scope: "endpoints:read",
  summary: "List the changes of an endpoint, newest first, also of a removed one",
  description: "The latest 500. Secrets and the values of headers are in none of them.",
  params: { tenant: Tenant, id: EndpointId },
  query: pageQuery,
  output: Schema.Struct({
    changes: Schema.Array(PagedStep.annotate({ identifier: "EndpointChange" })),
    next
  }).annotate({ identifier: "EndpointHistory" }),
  refusals: ["not-found"],
  run: ({ params, query: { cursor, limit = defaultLimit } }) =>
    Effect.gen(function* () {
      const after = yield* pages.read(cursor)
      const { changes, next } = yield* readingHistory(pageHistory(params, after, limit))
      return { changes, ...pages.next(next) }
    })
})
