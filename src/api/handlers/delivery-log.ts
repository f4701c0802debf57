import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { allTenants } from "../../operations/tokens/token.ts"
import { DeliveryLog } from "../../projection/delivery-log.ts"
import { Api } from "../definition/api.ts"
import { defaultLimit, timeOf } from "../definition/common.ts"
import { listing, unavailable } from "../failures.ts"
import { invalidRequest } from "../validation.ts"

/** The log, where this console has one. */
const log = Effect.flatMap(
  Effect.serviceOption(DeliveryLog),
  Option.match({
    onNone: () =>
      unavailable(
        "no projection runs, which the log of deliveries is read from: start the console with the role projection"
      ),
    onSome: Effect.succeed
  })
)

/** Carries out the routes of the log of deliveries. */
export const deliveryLogHandlers = HttpApiBuilder.group(Api, "log", (handlers) =>
  handlers.handleAll({
    list: ({ params, query: { limit = defaultLimit, since, until, ...query } }) =>
      listing(
        Effect.gen(function* () {
          const { find } = yield* log
          const tenant = params.tenant === allTenants ? undefined : params.tenant
          if (query.endpoint !== undefined && tenant === undefined)
            return yield* invalidRequest([
              { field: "endpoint", message: "needs a tenant in the path, and not *" }
            ])
          const { cursor, ...page } = yield* find({
            ...query,
            limit,
            ...(tenant === undefined ? {} : { tenant }),
            ...(since === undefined ? {} : { since: timeOf(since) }),
            ...(until === undefined ? {} : { until: timeOf(until) })
          })
          return { ...page, ...(cursor === null ? {} : { next: cursor }) }
        })
      ),
    projection: () => listing(Effect.flatMap(log, ({ status }) => status))
  })
)
