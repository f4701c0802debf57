import { Effect, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Broker } from "../../broker/broker.ts"
import { readStatus } from "../../operations/status/status-report.ts"
import { listWorkers } from "../../operations/status/workers.ts"
import { pageTenants } from "../../operations/tenants/tenant-page.ts"
import { makeCursor } from "../cursor.ts"
import { Api } from "../definition/api.ts"
import { defaultLimit } from "../definition/common.ts"
import { listing, unavailable } from "../failures.ts"

const cursor = makeCursor("tenants", Schema.String)

/** Carries out the routes of the installation as a whole. */
export const systemHandlers = HttpApiBuilder.group(Api, "system", (handlers) =>
  handlers.handleAll({
    status: () =>
      listing(Effect.catchTag(readStatus, "NoLeader", ({ message }) => unavailable(message))),
    workers: () => listing(listWorkers),
    tenants: ({ query }) =>
      listing(
        Effect.gen(function* () {
          const after = yield* cursor.read(query.cursor)
          const { next, tenants } = yield* pageTenants(after, query.limit ?? defaultLimit)
          return { tenants, ...(next === undefined ? {} : { next: cursor.write(next) }) }
        })
      )
  })
)

/** Carries out the routes that need no token. */
export const healthHandlers = HttpApiBuilder.group(Api, "health", (handlers) =>
  handlers.handleAll({
    health: () =>
      Effect.map(Broker, ({ life }) => ({
        status: "ok" as const,
        broker: life() === undefined ? ("away" as const) : ("connected" as const)
      }))
  })
)
