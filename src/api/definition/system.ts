import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Status } from "../../operations/status/status-report.ts"
import { Workers } from "../../operations/status/workers.ts"
import { Access, Needs } from "../access.ts"
import { next, pageQuery } from "./common.ts"

const status = HttpApiEndpoint.get("status", "/v1/status", {
  success: Status.annotate({
    identifier: "Status",
    description: "How the installation fares, as `petrel status` shows it."
  })
})
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "Show how the installation fares, and what to do about problems")

const workers = HttpApiEndpoint.get("workers", "/v1/workers", {
  success: Workers.annotate({
    identifier: "Workers",
    description: "The workers that are running, and the partitions that none of them has."
  })
})
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "List the workers, and which partitions each has")

const tenants = HttpApiEndpoint.get("tenants", "/v1/tenants", {
  query: pageQuery,
  success: Schema.Struct({
    tenants: Schema.Array(
      Schema.Struct({
        tenant: Schema.String,
        endpoints: Schema.Int.annotateKey({ description: "How many endpoints it has." })
      })
    ),
    next
  }).annotate({ identifier: "TenantList" })
})
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "List the tenants that have endpoints")

/** Routes of the installation as a whole. */
export class SystemGroup extends HttpApiGroup.make("system")
  .add(status, workers, tenants)
  .middleware(Access)
  .annotate(OpenApi.Description, "The installation as a whole, for its operators.") {}

const health = HttpApiEndpoint.get("health", "/healthz", {
  success: Schema.Struct({
    status: Schema.Literal("ok"),
    broker: Schema.Literals(["connected", "away"])
  }).annotate({ identifier: "Health" })
}).annotate(OpenApi.Summary, "Tell that the process answers, and whether it has a broker")

/** Routes that need no token. */
export class HealthGroup extends HttpApiGroup.make("health").add(health) {}
