import { Effect, Schema, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PublishError } from "../../broker/publication.ts"
import { scanQueue } from "../../broker/scan.ts"
import { Retried } from "../../cluster/command.ts"
import { readAllNow } from "../../delivery/introspection/endpoint-activity.ts"
import { deliverySubject } from "../../domain/delivery.ts"
import { endpointKey, endpointKeyIn } from "../../domain/endpoint.ts"
import { Invalid, invalid } from "../../domain/problem.ts"
import { WaitingFilter } from "../../domain/retry-record.ts"
import { Token } from "../../domain/token.ts"
import { listEndpoints } from "../../endpoints/endpoint-store.ts"
import { withoutCommands } from "../../text/plain-text.ts"
import { StatusFilter } from "../dead-letters/dead-letter-selection.ts"
import { rangeProblems } from "../parameters.ts"
import { retryEndpointNow } from "./retry-endpoint.ts"

/** Endpoints that are listed by name with why nothing of theirs was tried: a result is one message. */
const maxSkipped = 100

/** Which waiting deliveries of a tenant are tried now; all conditions hold at once. */
export const RetrySelection = Schema.Struct({
  ...WaitingFilter.fields,
  status: Schema.optionalKey(StatusFilter),
  tenant: Token.annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.optionalKey(Token).annotateKey({
    description: "Only those of this endpoint. (Default: of all)"
  }),
  ignoreRetryAfter: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Does not wait for the end of the receiver's Retry-After. (Default: false)"
  })
})
export type RetrySelection = typeof RetrySelection.Type

/** What became, or would become, of the deliveries that were to be tried now. */
export const RetriedDeliveries = Schema.Struct({
  endpoints: Schema.Int.annotateKey({
    description: "Endpoints that were looked at: those for which something waits."
  }),
  ...Retried.fields,
  skipped: Schema.Array(
    Schema.Struct({
      endpoint: Schema.String.annotateKey({ description: "The id of the endpoint." }),
      why: Schema.String.annotateKey({ description: "Why it takes nothing." })
    })
  ).annotateKey({ description: "Endpoints that take nothing now, and why; at most 100 of them." }),
  skippedElsewhere: Schema.Int.annotateKey({ description: "How many further ones take nothing." })
})
export type RetriedDeliveries = typeof RetriedDeliveries.Type

/** Where a retry goes on, and what it did before. */
export const RetryCursor = Schema.Struct({
  after: Schema.String.annotateKey({ description: "All endpoints up to this one are done." }),
  done: RetriedDeliveries
})
export type RetryCursor = typeof RetryCursor.Type

/** How a retry is watched. */
export interface RetryOptions {
  /** Who asks for it. */
  readonly by: string
  /** Counts what would be tried, and tries nothing. (Default: false) */
  readonly dryRun?: boolean
  /** The id of the job that it is the work of. */
  readonly job?: string
  /** Where it goes on, if it was interrupted and that is known. */
  readonly from?: RetryCursor | undefined
  /**
   * Stores that all up to a cursor is done, and the number of endpoints that are left, before the next
   * one is asked: what goes on leaves no fact that would tell of it.
   */
  readonly onCursor?: (
    cursor: RetryCursor,
    left: number
  ) => Effect.Effect<unknown, BrokerError | PublishError, Broker>
}

const nothingRetried: RetriedDeliveries = {
  ...{ endpoints: 0, moved: 0, inFlight: 0, inBacklog: 0, left: 0 },
  ...{ skipped: [], skippedElsewhere: 0 }
}

/** Fails with what is wrong with a selection, whatever waits. An empty one must not mean everything. */
export const checkRetry = (
  selection: RetrySelection,
  all: boolean,
  now: number
): Effect.Effect<void, Invalid> => {
  const { ignoreRetryAfter: _, tenant: __, ...narrowed } = selection
  const isNarrowed = Object.values(narrowed).some((given) => given !== undefined)
  if (all === isNarrowed)
    return Effect.fail(
      all
        ? invalid("all", "and fields that narrow it cannot be combined")
        : invalid(
            "",
            "say what to try now: by `endpoint`, `types`, `status`, `error`, `since` or `until`, or `all` that waits; nothing was done"
          )
    )
  const problems = rangeProblems(selection, now)
  return problems.length > 0 ? Effect.fail(new Invalid({ problems })) : Effect.void
}

/**
 * Reads for which endpoints, by key, deliveries wait in a partition as schedules of the broker. Only
 * their headers tell: all are read, once, and not by each endpoint that may have none.
 */
const scheduledIn = Effect.fnUntraced(function* (partition: number) {
  const { names } = yield* Broker
  const keys = new Set<string>()
  const schedules = scanQueue(names.deliveries(partition), names.subjects.schedulesOf(partition))
  yield* Stream.runForEach(schedules, (message) =>
    Effect.sync(() => keys.add(endpointKeyIn(deliverySubject(message))))
  )
  return keys
})

/** Returns the ids of a tenant's endpoints for which something waits, in order. */
const waitingAt = Effect.fnUntraced(function* (tenant: string) {
  const [stored, now] = yield* Effect.all([listEndpoints(tenant), readAllNow(tenant)], {
    concurrency: 2
  })
  const scheduled = new Map<number, ReadonlySet<string>>()
  const ids: Array<string> = []
  for (const { endpoint } of stored) {
    const { id } = endpoint
    const found = now(tenant, id)
    // Nothing is known of it: its owner is asked.
    if (found === undefined) {
      ids.push(id)
      continue
    }
    const { partition, waiting } = found
    const { backlog, queue, schedules } = waiting
    if (queue + backlog + (schedules ?? 0) > 0) ids.push(id)
    else if (schedules === undefined) {
      // Too many to be counted for each.
      const keys = scheduled.get(partition) ?? (yield* scheduledIn(partition))
      scheduled.set(partition, keys)
      if (keys.has(endpointKey(tenant, id))) ids.push(id)
    }
  }
  return ids
})

const withSkipped = (
  done: RetriedDeliveries,
  endpoint: string,
  message: string
): RetriedDeliveries =>
  done.skipped.length < maxSkipped
    ? { ...done, skipped: [...done.skipped, { endpoint, why: withoutCommands(message) }] }
    : { ...done, skippedElsewhere: done.skippedElsewhere + 1 }

/**
 * Lets deliveries that wait for their next attempt go on now, endpoint by endpoint, under the limits
 * of each. It is safe to interrupt and to run again: none is sent twice for that. Fails with
 * CommandFailed where no worker does it.
 */
export const retryWaiting = Effect.fnUntraced(function* (
  { endpoint, ignoreRetryAfter = false, tenant, ...filter }: RetrySelection,
  { by, dryRun = false, from, job, onCursor }: RetryOptions
) {
  const all = endpoint === undefined ? yield* waitingAt(tenant) : [endpoint]
  const ids = all.filter((id) => from === undefined || id > from.after)
  let done = from?.done ?? nothingRetried
  for (const [index, id] of ids.entries()) {
    const how = { ignoreRetryAfter, filter, dryRun, job }
    const before = { ...done, endpoints: done.endpoints + 1 }
    done = yield* retryEndpointNow({ tenant, id }, how, by).pipe(
      Effect.map(({ inBacklog, inFlight, left, moved }) => ({
        ...before,
        moved: before.moved + moved,
        inFlight: before.inFlight + inFlight,
        inBacklog: before.inBacklog + inBacklog,
        left: before.left + left
      })),
      Effect.catchTags({
        EndpointNotFound: ({ message }) => Effect.succeed(withSkipped(before, id, message)),
        EndpointUnreadable: ({ message }) => Effect.succeed(withSkipped(before, id, message)),
        Invalid: ({ message }) => Effect.succeed(withSkipped(before, id, message))
      })
    )
    if (onCursor !== undefined) yield* onCursor({ after: id, done }, ids.length - index - 1)
  }
  return done
})
