import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import {
  DeliveryPage,
  DeliveryQuery,
  DeliveryRow,
  ProjectionStatus
} from "../../projection/delivery-log.ts"
import { Access, Needs } from "../access.ts"
import { next, pageQuery, TenantOrAll, Time, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

const { endpoint, error, event, state, type } = DeliveryQuery.fields

const Status = Schema.NumberFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 100, maximum: 599 })
)

const Row = documented(DeliveryRow, {
  identifier: "LoggedDelivery",
  description: "One round of a delivery.",
  fields: {
    delivery: "Its id, <event id>.<endpoint id>.",
    state:
      "`waiting` has not ended; `skipped` was left out by the plan, as the endpoint was disabled.",
    beganAt: "When the round began, ms since the epoch; null if that is not known any more.",
    at: "When it ended, ms since the epoch; of one that waits, when it began.",
    attempts: "The highest number of an attempt.",
    status: "The status of the last answer.",
    error: "The class of the last attempt's error.",
    reason: "Why it ended without success, or was left out.",
    durationMs: "Duration of the last attempt, ms.",
    nextAttemptAt: "When it is attempted again, ms since the epoch.",
    dead: "The number of the dead letter that it left."
  }
})

const { lag, searchedUntil } = DeliveryPage.fields

const list = HttpApiEndpoint.get("list", `${tenantPath}/deliveries`, {
  params: { tenant: TenantOrAll },
  query: {
    ...pageQuery,
    endpoint: endpoint.annotateKey({ description: "Only those of this endpoint." }),
    event: event.annotateKey({
      description: "The event's id, or its beginning if it ends with `*`."
    }),
    type: type.annotateKey({
      description: "The event's type, or its beginning if it ends with `*`: `invoice.*`."
    }),
    state: state.annotateKey({ description: "Only those in this state." }),
    status: Schema.optionalKey(Status),
    error: error.annotateKey({ description: "The class of the last attempt's error." }),
    since: Schema.optionalKey(Time.annotateKey({ description: "Ended then or later." })),
    until: Schema.optionalKey(Time.annotateKey({ description: "Ended then or earlier." }))
  },
  success: Schema.Struct({
    deliveries: Schema.Array(Row),
    next,
    searchedUntil: searchedUntil.annotateKey({
      description:
        "A page ends after 40 ms of searching. It then has what was found among all that is newer than this, ms since the epoch."
    }),
    lag: lag.annotateKey({ description: "How far the log is behind what happens." })
  }).annotate({ identifier: "DeliveryList" })
})
  .annotate(Needs, "deliveries:read")
  .annotate(OpenApi.Summary, "Search the log of deliveries, newest first")

const status = HttpApiEndpoint.get("projection", "/v1/projection", {
  success: documented(ProjectionStatus, {
    identifier: "Projection",
    description: "How the projection does that the log of deliveries is read from."
  })
})
  .annotate(Needs, "operator")
  .annotate(OpenApi.Summary, "Show how the log of deliveries does")

/** Routes of the log of deliveries. */
export class DeliveryLogGroup extends HttpApiGroup.make("log")
  .add(list, status)
  .middleware(Access)
  .annotate(
    OpenApi.Description,
    "What became of deliveries. It is answered by a console with the role projection; without one, with 503."
  ) {}
