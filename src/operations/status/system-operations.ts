import { Context, Effect, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { EndpointKeys, type TenantCount } from "../../endpoints/endpoint-keys.ts"
import { withoutCommands } from "../../text/plain-text.ts"
import { operation, operationGroup } from "../operation.ts"
import { defaultLimit, makeCursor, next, pageQuery } from "../parameters.ts"
import type { Condition } from "./conditions.ts"
import { listOutboxes, OutboxList } from "./incoming.ts"
import { keepReading } from "./kept-reading.ts"
import { readStatus, Status } from "./status-report.ts"
import { listWorkers, Workers } from "./workers.ts"

/** Tenants in the order of their names, and the name after which the next page begins. */
interface TenantPage {
  readonly tenants: ReadonlyArray<TenantCount>
  readonly next: string | undefined
}

/**
 * Reads a page of the tenants that have endpoints.
 *
 * @param after the name after which it begins.
 */
const pageTenants = Effect.fnUntraced(function* (after: string | undefined, limit: number) {
  const { current } = yield* EndpointKeys
  const found = current().tenants(after, limit + 1)
  const tenants = found.slice(0, limit)
  return {
    tenants,
    next: found.length > limit ? tenants.at(-1)?.tenant : undefined
  } satisfies TenantPage
})

/** How to get the state of the installation; a process that is asked again and again keeps it. */
export class StatusReadings extends Context.Service<StatusReadings, typeof readStatus>()(
  "petrel/operations/StatusReadings"
) {
  /** Reads it every second while it is asked for, until the scope closes: a page shows the last reading. */
  static readonly make = Effect.gen(function* () {
    const context = yield* Effect.context<Broker>()
    const read = yield* keepReading(readStatus, {
      everyMs: 1_000,
      oldestMs: 2_000,
      askingMs: 5_000
    })
    return StatusReadings.of(Effect.provide(read, context))
  })
}

const recentStatus = Effect.flatMap(
  Effect.serviceOption(StatusReadings),
  Option.getOrElse(() => readStatus)
)

const withoutCommandsIn = ({ code, text }: Condition): Condition => ({
  code,
  text: withoutCommands(text)
})

const status = operation("status", "GET", "/v1/status", {
  scope: "operator",
  summary: "Show the state of the installation, and what to do about problems",
  output: Status.annotate({
    identifier: "Status",
    description: "The state of the installation."
  }),
  run: () =>
    Effect.map(recentStatus, ({ notices, problems, ...status }) => ({
      ...status,
      problems: problems.map(withoutCommandsIn),
      notices: notices.map(withoutCommandsIn)
    }))
})

const workers = operation("workers", "GET", "/v1/workers", {
  scope: "operator",
  summary: "List the workers, and which partitions each has",
  output: Workers.annotate({
    identifier: "Workers",
    description: "The workers that are running, and the partitions that none of them has."
  }),
  run: () => listWorkers
})

const outboxes = operation("outboxes", "GET", "/v1/outboxes", {
  scope: "operator",
  summary: "List the outboxes of databases, as their relays last reported them",
  output: OutboxList,
  run: () => listOutboxes
})

const pages = makeCursor("tenants", Schema.String)

const tenants = operation("tenants", "GET", "/v1/tenants", {
  scope: "operator",
  summary: "List the tenants that have endpoints",
  query: pageQuery,
  output: Schema.Struct({
    tenants: Schema.Array(
      Schema.Struct({
        tenant: Schema.String.annotateKey({ description: "The name of the tenant." }),
        endpoints: Schema.Int.annotateKey({ description: "How many endpoints it has." })
      })
    ).annotateKey({ description: "The tenants." }),
    next
  }).annotate({ identifier: "TenantList" }),
  run: ({ query: { cursor, limit = defaultLimit } }) =>
    Effect.gen(function* () {
      const after = yield* pages.read(cursor)
      const { next, tenants } = yield* pageTenants(after, limit)
      return { tenants, ...pages.next(next) }
    })
})

/** Operations on the installation as a whole. */
export const systemOperations = operationGroup(
  "system",
  "The installation as a whole, for its operators.",
  status,
  workers,
  outboxes,
  tenants
)

const health = operation("health", "GET", "/healthz", {
  insteadOverNats: "ask with `nats micro ping petrel`",
  scope: undefined,
  summary: "Show that the process answers, and whether it has a broker",
  output: Schema.Struct({
    status: Schema.Literal("ok").annotateKey({ description: "Whether it serves." }),
    broker: Schema.Literals(["connected", "away"]).annotateKey({
      description: "Whether the broker answers."
    })
  }).annotate({ identifier: "Health" }),
  run: () =>
    Effect.map(Broker, ({ life }) => ({
      status: "ok" as const,
      broker: life() === undefined ? ("away" as const) : ("connected" as const)
    }))
})

/** Operations that need no token. */
export const healthOperations = operationGroup("health", "Whether the process answers.", health)
