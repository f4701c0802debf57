import { Effect, Option, Schema } from "effect"
import {
  AttemptQuery,
  DeliveryLog,
  DeliveryPage,
  DeliveryQuery,
  DeliveryRow,
  EventQuery,
  EventRow,
  type PageEnds,
  ProjectionStatus
} from "../../projection/delivery-log.ts"
import { Caller, maySeeAnswers } from "../caller.ts"
import { readStats, Stats } from "../history/logged-totals.ts"
import { Period } from "../history/period-totals.ts"
import { documented, operation, operationGroup } from "../operation.ts"
import {
  checkEndpoints,
  defaultLimit,
  EndpointId,
  next,
  onlyOne,
  pageQuery,
  previous,
  Tenant,
  TenantOrAll,
  tenantOf,
  tenantPath
} from "../parameters.ts"
import { NoProjection } from "../refusals.ts"
import { AttemptView, withAnswers } from "./attempt-answers.ts"

const Row = documented(DeliveryRow, {
  identifier: "LoggedDelivery",
  description: "One round of a delivery.",
  fields: {
    delivery: "Its id, <event id>.<endpoint id>.",
    state:
      "`waiting` has not ended; `skipped` was left out by the plan, as the endpoint was disabled.",
    beganAt: "When the round began; null if that is no longer known.",
    at: "When it ended; of one that waits, when it began.",
    attempts: "The highest number of an attempt.",
    status: "The status of the last answer.",
    error: "The class of the last attempt's error.",
    reason: "Why it ended without success, or was left out.",
    durationMs: "Duration of the last attempt, ms.",
    nextAttemptAt: "When it is attempted again.",
    dead: "The number of the dead letter that it left."
  }
})

/** The log, where this console has one. */
const log = Effect.flatMap(
  Effect.serviceOption(DeliveryLog),
  Option.match({
    onNone: () => Effect.fail(new NoProjection()),
    onSome: Effect.succeed
  })
)

const { lag, searchedUntil } = DeliveryPage.fields

/** The fields of a page other than its rows. */
const pageFields = {
  next,
  previous,
  searchedUntil: searchedUntil.annotateKey({
    description:
      "The search for a page ends after 40 ms. The page then has what was found among everything newer than this (of a previous page: older), however little that is, and a cursor to continue with."
  }),
  lag: lag.annotateKey({ description: "How far the log is behind what happens." })
}

/** Returns a page as it is answered. */
const answered = <A extends PageEnds>({ cursor, previous, ...page }: A) => ({
  ...page,
  ...(cursor === null ? {} : { next: cursor }),
  ...(previous === null ? {} : { previous })
})

const texts = {
  endpoint: {
    description: "Only those of this endpoint. May be repeated, as most filters: any holds."
  },
  event: { description: "The event's id, or its beginning if it ends with `*`." },
  type: { description: "The event's type, or its beginning if it ends with `*`: `invoice.*`." },
  status: {
    description:
      "The status of the last answer, or its class: `503`, `5xx`; `none`: there is no complete answer."
  },
  error: { description: "The class of the last attempt's error." },
  since: { description: "Ended then or later." },
  until: { description: "Ended then or earlier." }
}

const deliveryFilters = DeliveryQuery.fields

const list = operation("list", "GET", `${tenantPath}/deliveries`, {
  scope: "deliveries:read",
  summary: "Search the log of deliveries, newest first",
  params: { tenant: TenantOrAll },
  query: {
    ...pageQuery,
    endpoint: deliveryFilters.endpoint.annotateKey(texts.endpoint),
    event: deliveryFilters.event.annotateKey(texts.event),
    type: deliveryFilters.type.annotateKey(texts.type),
    state: deliveryFilters.state.annotateKey({ description: "Only those in this state." }),
    status: deliveryFilters.status.annotateKey(texts.status),
    error: deliveryFilters.error.annotateKey(texts.error),
    since: deliveryFilters.since.annotateKey(texts.since),
    until: deliveryFilters.until.annotateKey(texts.until)
  },
  output: Schema.Struct({
    deliveries: Schema.Array(Row).annotateKey({ description: "The deliveries." }),
    ...pageFields
  }).annotate({
    identifier: "DeliveryList"
  }),
  within: ({ query }) => onlyOne(query.endpoint),
  run: ({ params, query: { limit = defaultLimit, ...query } }) =>
    Effect.gen(function* () {
      const { find } = yield* log
      const tenant = tenantOf(params.tenant)
      yield* checkEndpoints(tenant, query.endpoint)
      return answered(yield* find({ ...query, limit, ...(tenant === undefined ? {} : { tenant }) }))
    })
})

const Attempt = documented(AttemptView, {
  identifier: "LoggedAttempt",
  description: "One attempt of a delivery.",
  fields: {
    delivery: "Its delivery's id, <event id>.<endpoint id>.",
    number: "Its number within its round, from 1.",
    isProbe: "It was sent while the endpoint's circuit was half-open.",
    durationMs: "How long it took, ms.",
    seq: "The sequence of its fact in the history.",
    response: "What the receiver answered, with the scope payloads:read.",
    redirects: "The redirects that it followed, with the scope payloads:read."
  }
})

const attemptFilters = AttemptQuery.fields

const attempts = operation("attempts", "GET", `${tenantPath}/attempts`, {
  scope: "deliveries:read",
  summary: "Search the log of attempts, newest first",
  description:
    "Requests that were made to receivers. With the scope payloads:read, with what they answered, as far as it is kept.",
  params: { tenant: TenantOrAll },
  query: {
    ...pageQuery,
    endpoint: attemptFilters.endpoint.annotateKey(texts.endpoint),
    event: attemptFilters.event.annotateKey(texts.event),
    type: attemptFilters.type.annotateKey(texts.type),
    outcome: attemptFilters.outcome.annotateKey({ description: "Its outcome." }),
    status: attemptFilters.status.annotateKey({
      description:
        "The status of its complete answer, or its class: `503`, `5xx`; `none`: it got none."
    }),
    error: attemptFilters.error.annotateKey({ description: "The class of its error." }),
    since: attemptFilters.since.annotateKey({ description: "Made then or later." }),
    until: attemptFilters.until.annotateKey({ description: "Made then or earlier." })
  },
  output: Schema.Struct({
    attempts: Schema.Array(Attempt).annotateKey({ description: "The attempts." }),
    ...pageFields
  }).annotate({
    identifier: "AttemptList"
  }),
  within: ({ query }) => onlyOne(query.endpoint),
  run: ({ params, query: { limit = defaultLimit, ...query } }) =>
    Effect.gen(function* () {
      const { findAttempts } = yield* log
      const caller = yield* Caller
      const tenant = tenantOf(params.tenant)
      yield* checkEndpoints(tenant, query.endpoint)
      const page = yield* findAttempts({
        ...query,
        limit,
        ...(tenant === undefined ? {} : { tenant })
      })
      const found: ReadonlyArray<AttemptView> = maySeeAnswers(caller)
        ? yield* withAnswers(page.attempts)
        : page.attempts
      return answered({ ...page, attempts: found })
    })
})

const eventFilters = EventQuery.fields

const events = operation("events", "GET", `${tenantPath}/events`, {
  scope: "deliveries:read",
  summary: "Search the log of events, newest first",
  description: "Events that were routed, including those that no endpoint wanted.",
  params: { tenant: TenantOrAll },
  query: {
    ...pageQuery,
    type: eventFilters.type.annotateKey(texts.type),
    channel: eventFilters.channel.annotateKey({
      description:
        "How it came: `http`, `nats-api` (through the API), `nats` (published to its subject), `stream:<name>` (copied from a stream), or its beginning if it ends with `*`."
    }),
    since: eventFilters.since.annotateKey({ description: "Stored then or later." }),
    until: eventFilters.until.annotateKey({ description: "Stored then or earlier." })
  },
  output: Schema.Struct({
    events: Schema.Array(
      documented(EventRow, {
        identifier: "LoggedEvent",
        description: "An event that was routed.",
        fields: {
          id: "Its id, as receivers get it.",
          seq: "Its sequence in the stream of events.",
          at: "When the broker stored it.",
          channel: "How it came; null if that is no longer known.",
          rounds: "How many rounds of its deliveries are in each state."
        }
      })
    ).annotateKey({ description: "The events." }),
    ...pageFields
  }).annotate({ identifier: "EventList" }),
  run: ({ params, query: { limit = defaultLimit, ...query } }) =>
    Effect.gen(function* () {
      const { findEvents } = yield* log
      const tenant = tenantOf(params.tenant)
      return answered(
        yield* findEvents({ ...query, limit, ...(tenant === undefined ? {} : { tenant }) })
      )
    })
})

const statsQuery = {
  since: deliveryFilters.since.annotateKey({
    description: "From the hour on that it falls into. (Default: a day ago)"
  }),
  until: deliveryFilters.until.annotateKey({
    description: "Up to the end of its hour. (Default: now)"
  }),
  by: Schema.optionalKey(
    Period.annotateKey({ description: "By hour or day (UTC). (Default: hour)" })
  )
}

const statsOutput = documented(Stats, {
  identifier: "Stats",
  description:
    "What attempts came to, by hour or day. Quantiles are within 5% of the exact ones, or within 0.1 ms.",
  fields: {
    since:
      "The beginning of the first hour that is counted: later than asked for where the log does not reach back so far.",
    whole: "All periods together.",
    periods: "Oldest first, those without attempts too.",
    lag: "How far the log is behind what happens."
  }
})

const stats = operation("stats", "GET", `${tenantPath}/stats`, {
  scope: "deliveries:read",
  summary: "Show how many attempts of a tenant succeed, how they are answered, and how fast",
  params: { tenant: Tenant },
  query: statsQuery,
  output: statsOutput,
  run: ({ params: { tenant }, query }) => readStats({ tenant, ...query })
})

const endpointStats = operation("endpointStats", "GET", `${tenantPath}/endpoints/:id/stats`, {
  scope: "deliveries:read",
  summary: "Show how many attempts at an endpoint succeed, how they are answered, and how fast",
  params: { tenant: Tenant, id: EndpointId },
  query: statsQuery,
  output: statsOutput,
  within: ({ params }) => params.id,
  run: ({ params: { id, tenant }, query }) => readStats({ tenant, endpoint: id, ...query })
})

const status = operation("projection", "GET", "/v1/projection", {
  scope: "operator",
  summary: "Show the state of the log of deliveries",
  output: documented(ProjectionStatus, {
    identifier: "Projection",
    description: "The state of the projection, which the log of deliveries is read from."
  }),
  run: () => Effect.flatMap(log, ({ status }) => status)
})

/** Operations on the log of deliveries. */
export const logOperations = operationGroup(
  "log",
  "What became of deliveries. A console with the role projection answers it; without one the answer is 503.",
  list,
  attempts,
  events,
  stats,
  endpointStats,
  status
)
