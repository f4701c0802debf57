import { Effect, Option, Schema } from "effect"
import {
  DeliveryLog,
  DeliveryPage,
  DeliveryQuery,
  DeliveryRow,
  ProjectionStatus
} from "../../projection/delivery-log.ts"
import { documented } from "../documented.ts"
import { operation, operationGroup } from "../operation.ts"
import {
  defaultLimit,
  endpointOf,
  next,
  pageQuery,
  TenantOrAll,
  tenantOf,
  tenantPath
} from "../parameters.ts"
import { NoProjection } from "../refusals.ts"

const { endpoint, error, event, since, state, type, until } = DeliveryQuery.fields

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
    beganAt: "When the round began; null if that is not known any more.",
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

const list = operation("list", "GET", `${tenantPath}/deliveries`, {
  scope: "deliveries:read",
  summary: "Search the log of deliveries, newest first",
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
    since: since.annotateKey({ description: "Ended then or later." }),
    until: until.annotateKey({ description: "Ended then or earlier." })
  },
  output: Schema.Struct({
    deliveries: Schema.Array(Row),
    next,
    searchedUntil: searchedUntil.annotateKey({
      description:
        "A page ends after 40 ms of searching. It then has what was found among all that is newer than this."
    }),
    lag: lag.annotateKey({ description: "How far the log is behind what happens." })
  }).annotate({ identifier: "DeliveryList" }),
  run: ({ params, query: { limit = defaultLimit, ...query } }) =>
    Effect.gen(function* () {
      const { find } = yield* log
      const tenant = tenantOf(params.tenant)
      yield* endpointOf(tenant, query.endpoint)
      const { cursor, ...page } = yield* find({
        ...query,
        limit,
        ...(tenant === undefined ? {} : { tenant })
      })
      return { ...page, ...(cursor === null ? {} : { next: cursor }) }
    })
})

const status = operation("projection", "GET", "/v1/projection", {
  scope: "operator",
  summary: "Show how the log of deliveries does",
  output: documented(ProjectionStatus, {
    identifier: "Projection",
    description: "How the projection does that the log of deliveries is read from."
  }),
  run: () => Effect.flatMap(log, ({ status }) => status)
})

/** Operations on the log of deliveries. */
export const logOperations = operationGroup(
  "log",
  "What became of deliveries. It is answered by a console with the role projection; without one, with 503.",
  list,
  status
)
