import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { RaisedAlertView } from "../../operations/alerts/raised-alerts.ts"
import { ExplainedDelivery } from "../../operations/deliveries/explain-delivery.ts"
import { EventView } from "../../operations/events/find-event.ts"
import {
  Grouping,
  GroupTotals,
  Period,
  PeriodTotals
} from "../../operations/history/period-totals.ts"
import { Access, Needs } from "../access.ts"
import { NotFound } from "../problems.ts"
import { EndpointId, pageQuery, Tenant, TenantOrAll, Time, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

const EventId = Schema.String.annotateKey({
  description: "The event's id, as receivers get it.",
  examples: ["acme.invoice-42-paid"]
})

const event = HttpApiEndpoint.get("event", `${tenantPath}/events/:event`, {
  params: { tenant: Tenant, event: EventId },
  success: documented(EventView, {
    identifier: "Event",
    description: "An event, and what became of it at each endpoint.",
    fields: {
      seq: "Its sequence in the stream of events.",
      at: "When the broker stored it, ms since the epoch.",
      bytes: "Size of its body; absent if the event is not kept any more.",
      deliveries: "What became of it at each endpoint: the last round."
    }
  }),
  error: [NotFound]
})
  .annotate(Needs, "deliveries:read")
  .annotate(OpenApi.Summary, "Show what became of an event at each endpoint")

const body = HttpApiEndpoint.get("eventBody", `${tenantPath}/events/:event/body`, {
  params: { tenant: Tenant, event: EventId },
  success: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array()),
  error: [NotFound]
})
  .annotate(Needs, "payloads:read")
  .annotate(OpenApi.Summary, "Get an event's body, as receivers get it")

const delivery = HttpApiEndpoint.get("delivery", `${tenantPath}/deliveries/:delivery`, {
  params: {
    tenant: Tenant,
    delivery: Schema.String.annotateKey({
      description: "The delivery's id, <event id>.<endpoint id>.",
      examples: ["acme.invoice-42-paid.billing"]
    })
  },
  success: documented(ExplainedDelivery, {
    identifier: "Delivery",
    description: "One event for one endpoint: its rounds and attempts, and why it waits."
  }),
  error: [NotFound]
})
  .annotate(Needs, "deliveries:read")
  .annotate(OpenApi.Summary, "Show a delivery: its rounds and attempts, and why it waits")

const By = Schema.Literals([...Period.literals, ...Grouping.literals]).annotateKey({
  description: "Sum up by hour or day (UTC), or by endpoint or event type. (Default: hour)"
})

const totals = HttpApiEndpoint.get("totals", `${tenantPath}/totals`, {
  params: { tenant: TenantOrAll },
  query: {
    by: Schema.optionalKey(By),
    since: Schema.optionalKey(
      Time.annotateKey({ description: "From then on. (Default: a day ago)" })
    ),
    until: Schema.optionalKey(Time.annotateKey({ description: "Up to then. (Default: now)" })),
    limit: pageQuery.limit
  },
  success: [
    Schema.Struct({
      totals: Schema.Array(
        documented(PeriodTotals, {
          identifier: "Totals",
          description: "What happened to a tenant's events within an hour or a day (UTC).",
          fields: { begins: "When the period begins, ms since the epoch." }
        })
      )
    }).annotate({ identifier: "TotalsList" }),
    Schema.Struct({
      totals: Schema.Array(
        documented(GroupTotals, {
          identifier: "GroupTotals",
          description:
            "What happened at an endpoint or with an event type; those with most dead letters first.",
          fields: { name: "`TENANT/ENDPOINT`, or the type; null for all that are not listed." }
        })
      )
    }).annotate({ identifier: "GroupTotalsList" })
  ]
})
  .annotate(Needs, "deliveries:read")
  .annotate(OpenApi.Summary, "Sum up what happened, by hour, day, endpoint or event type")

const alerts = HttpApiEndpoint.get("alerts", `${tenantPath}/alerts`, {
  params: { tenant: TenantOrAll },
  success: Schema.Struct({
    alerts: Schema.Array(
      documented(RaisedAlertView, {
        identifier: "Alert",
        description: "An alert that is raised."
      })
    )
  }).annotate({ identifier: "AlertList" })
})
  .annotate(Needs, "deliveries:read")
  .annotate(OpenApi.Summary, "List the alerts that are raised")

const live = HttpApiEndpoint.get("live", `${tenantPath}/live`, {
  params: { tenant: TenantOrAll },
  query: { endpoint: Schema.optionalKey(EndpointId) },
  success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" }))
})
  .annotate(Needs, "deliveries:read")
  .annotate(OpenApi.Summary, "Follow failures as they happen (server-sent events)")
  .annotate(
    OpenApi.Description,
    "Each `failure` is a fact of the history as JSON, with its sequence as id. `dropped` says how many were left out for a client that reads too slowly. What happens while nobody listens is in the log."
  )

/** Routes of what became of events. */
export class DeliveriesGroup extends HttpApiGroup.make("deliveries")
  .add(event, body, delivery, totals, alerts, live)
  .middleware(Access)
  .annotate(OpenApi.Description, "What became of events.") {}
