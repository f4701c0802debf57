import { HttpApi, OpenApi } from "effect/http-api"
import packageJson from "../../../package.json" with { type: "json" }
import { Validation } from "../validation.ts"
import { AttemptsGroup } from "./attempts.ts"
import { DeadLettersGroup } from "./dead-letters.ts"
import { DeliveriesGroup } from "./deliveries.ts"
import { DeliveryLogGroup } from "./delivery-log.ts"
import { EndpointsGroup } from "./endpoints.ts"
import { EventsGroup } from "./events.ts"
import { JobsGroup } from "./jobs.ts"
import { HealthGroup, SystemGroup } from "./system.ts"
import { TokensGroup } from "./tokens.ts"

const description = `Publish events, manage the endpoints that they go to, and see what became of each delivery.

Each request needs a token (\`Authorization: Bearer ptl_…\`, made with \`petrel token create\`), which belongs to one tenant, or to all of them, and allows what its scopes say. Problems come as application/problem+json (RFC 9457); unknown fields are refused by name. Times are ms since the epoch, and durations are texts such as "30 seconds", where nothing else is said.`

/** Unknown fields are refused, all problems are told, and each with its value. */
const strict = { onExcessProperty: "error", errors: "all", reportInput: true } as const

/** The HTTP API. A route is a part of its group, in a file of its own. */
export class Api extends HttpApi.make("petrel")
  // One to a line, so that routes of different people do not meet.
  .add(
    EventsGroup,
    DeliveriesGroup,
    DeliveryLogGroup,
    AttemptsGroup,
    DeadLettersGroup,
    JobsGroup,
    EndpointsGroup,
    TokensGroup,
    SystemGroup,
    HealthGroup
  )
  .middleware(Validation)
  .annotate(HttpApi.PayloadParseOptions, strict)
  .annotate(HttpApi.QueryParseOptions, strict)
  .annotate(HttpApi.ParamsParseOptions, { errors: "all", reportInput: true })
  .annotate(OpenApi.Title, "Petrel")
  .annotate(OpenApi.Version, packageJson.version)
  .annotate(OpenApi.Description, description) {}
