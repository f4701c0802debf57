import { Array as Arr, Context, Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import packageJson from "../../package.json" with { type: "json" }
import { type Operation, type OperationGroup, unchanged } from "../operations/operation.ts"
import { Access } from "./access.ts"
import { etag } from "./answer.ts"
import { refusalProblems } from "./failures.ts"
import { groups } from "./groups.ts"
import { RequestTimeout, TooLarge, UnsupportedMediaType, Validation } from "./problems.ts"

const description = `Publish events, manage the endpoints that they go to, and see what became of each delivery.

Each request needs a token (\`Authorization: Bearer ptl_…\`, made with \`petrel token create\`), which belongs to one tenant, or to all of them, and allows what its scopes say. Problems come as application/problem+json (RFC 9457); unknown fields are refused by name. Times are texts as RFC 3339 has them: in answers in UTC with ms (\`2026-03-04T10:30:00.000Z\`), in requests with any offset. Durations that are set are texts such as "30 seconds"; requests may also have 5m, "1h 30m" or PT5M (ISO 8601). Durations that were measured are numbers of ms, and their names end in \`Ms\`.`

const licenseUrl = "https://www.apache.org/licenses/LICENSE-2.0"

/** Unknown fields are refused, all problems are told, and each with its value. */
const strict = { onExcessProperty: "error", errors: "all", reportInput: true } as const

const written = (operation: Operation<unknown>, output: Schema.Top): Schema.Top => {
  switch (operation.media) {
    case "*/*":
      return Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array({ contentType: operation.media }))
    case "text/event-stream":
      return Schema.String.pipe(HttpApiSchema.asText({ contentType: operation.media }))
    default:
      if (output === unchanged) return output
      return operation.hasRevision === true ? HttpApiSchema.WithHeaders(output, etag) : output
  }
}

/** Problems with a body, of whatever is in it. */
const bodyProblems = [RequestTimeout, TooLarge, UnsupportedMediaType]

const routeOf = (operation: Operation<unknown>) => {
  const { method, name, output, path, refusals, scope, summary } = operation
  const { headers, params, payload, query } = operation
  const route = HttpApiEndpoint.make(method)(name, path, {
    ...{ headers, params, payload, query },
    success: [output].flat().map((one) => written(operation, one)),
    error: [
      ...refusals.map((one) => refusalProblems[one]),
      ...(payload === undefined ? [] : bodyProblems)
    ]
  })
    .annotate(OpenApi.Summary, summary)
    .annotateMerge(
      operation.description === undefined
        ? Context.empty()
        : Context.make(OpenApi.Description, operation.description)
    )
  return scope === undefined ? route : route.middleware(Access)
}

const groupOf = ({ description, name, operations }: OperationGroup<Operation<unknown>>) =>
  HttpApiGroup.make(name)
    .add(...Arr.map(operations, routeOf))
    .annotate(OpenApi.Description, description)

/** The HTTP API, made from the operations. */
export const Api = HttpApi.make("petrel")
  .add(...Arr.map(groups, groupOf))
  .middleware(Validation)
  .annotate(HttpApi.PayloadParseOptions, strict)
  .annotate(HttpApi.QueryParseOptions, strict)
  .annotate(HttpApi.ParamsParseOptions, { errors: "all", reportInput: true })
  .annotate(OpenApi.Title, "Petrel")
  .annotate(OpenApi.Version, packageJson.version)
  .annotate(OpenApi.Description, description)
  .annotate(OpenApi.License, { name: packageJson.license, url: licenseUrl })
