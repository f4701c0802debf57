import { Clock, Duration, Effect, Schema, Stream } from "effect"
import type { Broker } from "../../broker/broker.ts"
import { present } from "../../domain/record.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { LogSums } from "../../projection/delivery-log.ts"
import { withoutCommands } from "../../text/plain-text.ts"
import { AlertPosition, listRaisedAlerts, pageOfAlerts, RaisedAlertView } from "../alerts/alerts.ts"
import { Caller, maySeeAnswers, withoutAnswer } from "../caller.ts"
import { EventView, readEventBody, showEvent } from "../events/find-event.ts"
import { readingHistory } from "../history/history-readings.ts"
import { liveFailures } from "../history/live-failures.ts"
import { logGroups, logPeriods } from "../history/logged-totals.ts"
import {
  Grouping,
  GroupTotals,
  Period,
  PeriodTotals,
  sumUpGroups,
  sumUpHistory
} from "../history/period-totals.ts"
import { Bytes, documented, Following, operation, operationGroup } from "../operation.ts"
import {
  DeliveryId,
  defaultLimit,
  EndpointId,
  EventId,
  endpointIn,
  makeCursor,
  next,
  pageQuery,
  Tenant,
  TenantOrAll,
  tenantOf,
  tenantPath
} from "../parameters.ts"
import { ExplainedDelivery, explainDelivery, findDelivery } from "./explain-delivery.ts"

const event = operation("event", "GET", `${tenantPath}/events/:event`, {
  scope: "deliveries:read",
  summary: "Show what became of an event at each endpoint",
  params: { tenant: Tenant, event: EventId },
  output: documented(EventView, {
    identifier: "Event",
    description: "An event, and what became of it at each endpoint.",
    fields: {
      seq: "Its sequence in the stream of events.",
      at: "When the broker stored it.",
      routed:
        "False while nothing is recorded of it: it is stored, and its endpoints are not known yet.",
      bytes: "Size of its body; absent if the event is no longer kept.",
      deliveries: "What became of it at each endpoint: the last round."
    }
  }),
  refusals: ["not-found"],
  run: ({ params: { event, tenant } }) => showEvent(tenant, event)
})

const body = operation("eventBody", "GET", `${tenantPath}/events/:event/body`, {
  scope: "payloads:read",
  summary: "Get an event's body, as receivers get it",
  description: "It has the event's content type.",
  params: { tenant: Tenant, event: EventId },
  output: Schema.Uint8Array,
  media: "*/*",
  refusals: ["not-found"],
  run: ({ params: { event, tenant } }) =>
    Effect.map(
      readEventBody(tenant, event),
      ({ body, contentType }) => new Bytes({ body, contentType })
    )
})

const delivery = operation("delivery", "GET", `${tenantPath}/deliveries/:delivery`, {
  scope: "deliveries:read",
  summary: "Show a delivery: its rounds and attempts, and why it waits",
  params: {
    tenant: Tenant,
    delivery: DeliveryId
  },
  output: documented(ExplainedDelivery, {
    identifier: "Delivery",
    description: "One event for one endpoint: its rounds and attempts, and why it waits."
  }),
  refusals: ["not-found"],
  within: ({ params }) => endpointIn(params.delivery),
  run: ({ params: { delivery, tenant } }) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const explained = withoutCommandsIn(yield* explainDelivery(delivery, tenant))
      return maySeeAnswers(caller) ? explained : withoutAnswers(explained)
    })
})

const deliveryBody = operation("deliveryBody", "GET", `${tenantPath}/deliveries/:delivery/body`, {
  scope: "payloads:read",
  summary: "Get the body of a delivery's event, as its receiver gets it",
  description: "It has the event's content type.",
  params: { tenant: Tenant, delivery: DeliveryId },
  output: Schema.Uint8Array,
  media: "*/*",
  refusals: ["not-found"],
  within: ({ params }) => endpointIn(params.delivery),
  run: ({ params: { delivery, tenant } }) =>
    Effect.gen(function* () {
      // An event is shown to whom it was delivered.
      const { event, eventSeq } = yield* findDelivery(delivery, tenant)
      return new Bytes(yield* readEventBody(tenant, event ?? `evt_${eventSeq}`))
    })
})

/** What its rounds wait for, without what only people at a terminal can do. */
const withoutCommandsIn = (explained: typeof ExplainedDelivery.Type) => ({
  ...explained,
  rounds: explained.rounds.map(({ holds, ...round }) => ({
    ...round,
    ...(holds === undefined
      ? {}
      : {
          holds: holds.map(({ by, freedBy, says }) => ({
            by,
            says: withoutCommands(says),
            freedBy: withoutCommands(freedBy)
          }))
        })
  }))
})

const withoutAnswers = (explained: typeof ExplainedDelivery.Type) => ({
  ...explained,
  rounds: explained.rounds.map((round) => ({
    ...round,
    attempts: round.attempts.map(withoutAnswer)
  }))
})

const day = Duration.toMillis("1 day")

/** What is summed up, and how. */
interface TotalsAsked {
  readonly by?: "hour" | "day" | "endpoint" | "type"
  readonly since?: number
  readonly until?: number
  readonly limit?: number
}

const sumUp = Effect.fnUntraced(function* (
  tenant: string | undefined,
  { by = "hour", limit = defaultLimit, ...asked }: TotalsAsked
) {
  const now = yield* Clock.currentTimeMillis
  const range = {
    ...(tenant === undefined ? {} : { tenant }),
    since: now - day,
    until: now,
    ...asked
  }
  if (by === "endpoint" || by === "type") {
    const logged = yield* logGroups({ ...range, by, limit })
    if (logged !== undefined) return logged
    const { keptSince, rows } = yield* readingHistory(sumUpGroups({ ...range, by, limit }))
    return { totals: rows, ...present({ keptSince }) }
  }
  const logged = yield* logPeriods({ ...range, by })
  if (logged !== undefined) return logged
  const totals: Array<PeriodTotals> = []
  const { keptSince } = yield* readingHistory(
    sumUpHistory({ ...range, by }, (complete) => Effect.sync(() => totals.push(...complete)))
  )
  return { totals, ...present({ keptSince }) }
})

const By = Schema.Literals([...Period.literals, ...Grouping.literals]).annotateKey({
  description: "Sum up by hour or day (UTC), or by endpoint or event type. (Default: hour)"
})

/** The fields of an answer with totals other than the totals. */
const known = {
  keptSince: Schema.optionalKey(Timestamp).annotateKey({
    description:
      "Of totals that were read from the history: since when it has facts, where it has dropped some from after `since`. They are missing."
  }),
  oldestHour: Schema.optionalKey(LogSums.fields.oldestHour).annotateKey({
    description:
      "Of totals from the log of deliveries: the beginning of the oldest hour that it has. Where it is later than `since`, hours before are missing."
  }),
  lag: Schema.optionalKey(LogSums.fields.lag).annotateKey({
    description:
      "Of totals from the log of deliveries: how far it is behind. The hours that `since` and `until` fall into count as a whole then."
  })
}

const totals = operation("totals", "GET", `${tenantPath}/totals`, {
  scope: "deliveries:read",
  summary: "Sum up what happened, by hour, day, endpoint or event type",
  params: { tenant: TenantOrAll },
  query: {
    by: Schema.optionalKey(By),
    since: Schema.optionalKey(
      Timestamp.annotateKey({ description: "From then on. (Default: a day ago)" })
    ),
    until: Schema.optionalKey(Timestamp.annotateKey({ description: "Up to then. (Default: now)" })),
    limit: pageQuery.limit
  },
  output: [
    Schema.Struct({
      totals: Schema.Array(
        documented(PeriodTotals, {
          identifier: "Totals",
          description: "What happened to a tenant's events within an hour or a day (UTC).",
          fields: { begins: "When the period begins." }
        })
      ).annotateKey({ description: "The totals." }),
      ...known
    }).annotate({ identifier: "TotalsList" }),
    Schema.Struct({
      totals: Schema.Array(
        documented(GroupTotals, {
          identifier: "GroupTotals",
          description:
            "What happened at an endpoint or with an event type; those with most dead letters first.",
          fields: { name: "`TENANT/ENDPOINT`, or the type; null for all that are not listed." }
        })
      ).annotateKey({ description: "The totals." }),
      ...known
    }).annotate({ identifier: "GroupTotalsList" })
  ],
  run: ({ params, query }) => sumUp(tenantOf(params.tenant), query)
})

const alertPages = makeCursor("alerts", AlertPosition)

const alerts = operation("alerts", "GET", `${tenantPath}/alerts`, {
  scope: "deliveries:read",
  summary: "List the alerts that are raised",
  params: { tenant: TenantOrAll },
  query: pageQuery,
  output: Schema.Struct({
    alerts: Schema.Array(
      documented(RaisedAlertView, {
        identifier: "Alert",
        description: "An alert that is raised."
      })
    ).annotateKey({
      description:
        "The alerts: about the system, then about tenants, then about endpoints; of each the newest first."
    }),
    total: Schema.Int.annotateKey({ description: "How many are raised, on all pages together." }),
    next
  }).annotate({ identifier: "AlertList" }),
  run: ({ params, query: { cursor, limit = defaultLimit } }) =>
    Effect.gen(function* () {
      const after = yield* alertPages.read(cursor)
      const raised = yield* listRaisedAlerts(tenantOf(params.tenant))
      const { next, ...page } = pageOfAlerts(raised, after, limit)
      return { ...page, ...alertPages.next(next) }
    })
})

const eventId = /^\d{1,15}$/

const lastEvent = {
  "last-event-id": Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter(
        (text: string) =>
          eventId.test(text)
            ? undefined
            : "must be the id of an event of this stream, such as 4711",
        { toJsonSchema: () => ({ pattern: eventId.source }) }
      )
    ).annotateKey({
      description: "The id of the last event that the client got: what came since is sent first.",
      examples: ["4711"]
    })
  )
}

const live = operation("live", "GET", `${tenantPath}/live`, {
  insteadOverNats: "subscribe to petrel.failures.<tenant>.>",
  scope: "deliveries:read",
  summary: "Follow failures as they happen (server-sent events)",
  description:
    "Each `failure` is a fact of the history as JSON, with its sequence as id. A client that comes back with the last id that it got (`Last-Event-ID`, as browsers do) gets what it has missed first, 1,000 failures at most. `dropped` says how many were left out (null: not known), why, and of what was missed between which sequences. What receivers answered is in it with the scope payloads:read only.",
  params: { tenant: TenantOrAll },
  query: { endpoint: Schema.optionalKey(EndpointId) },
  headers: lastEvent,
  output: Schema.String,
  media: "text/event-stream",
  within: ({ query }) => query.endpoint,
  run: ({ headers: { "last-event-id": last }, params, query: { endpoint } }) =>
    Effect.map(Caller, (caller) => {
      const followed = { tenant: tenantOf(params.tenant), endpoint }
      const failures = liveFailures(followed, last === undefined ? undefined : Number(last))
      const blind = Stream.map(failures, (message) =>
        message.tells === "failure"
          ? { ...message, record: withoutAnswer(message.record) }
          : message
      )
      return new Following<Broker | Caller>({ failures: maySeeAnswers(caller) ? failures : blind })
    })
})

/** Operations on what became of events. */
export const deliveryOperations = operationGroup(
  "deliveries",
  "What became of events.",
  event,
  body,
  delivery,
  deliveryBody,
  totals,
  alerts,
  live
)
