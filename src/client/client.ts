/**
 * `petrel/client`: Petrel from a program, over HTTP or over the program's own connection to the
 * broker. docs/guide/client.md shows it.
 */
import { type Calling, type Input, requestOf, resultOf, send, type Transport } from "./calling.ts"
import { type Operations, operations } from "./generated/operations.ts"
import type { Job, NewEvent, PublishedEvent } from "./generated/schemas.ts"
import { type HttpPlace, overHttp } from "./http.ts"
import { type FinishOptions, finishJob } from "./jobs.ts"
import { followFailures, type Live, type LiveOptions } from "./live.ts"
import { type NatsPlace, overNats } from "./nats.ts"
import { type CallOptions, checkTimes, type Described, listOf, type Page } from "./operation.ts"
import {
  type PublishAllOptions,
  publishBytes,
  publishEvents,
  publishOne,
  type RawEvent,
  type Summary
} from "./publishing.ts"

export type { Operations } from "./generated/operations.ts"
export type * from "./generated/schemas.ts"
export type { Fetch, FetchAnswer, HttpPlace } from "./http.ts"
export { type FinishOptions, JobFailed } from "./jobs.ts"
export type { Failure, Live, LiveMessage, LiveOptions } from "./live.ts"
export type { NatsConnection, NatsHeaders, NatsPlace } from "./nats.ts"
export type { Bytes, CallOptions, List, Page } from "./operation.ts"
export {
  type FieldProblem,
  isProblem,
  NoAnswer,
  PetrelProblem,
  type ProblemCode
} from "./problem.ts"
export type { Outcome, PublishAllOptions, RawEvent, Summary } from "./publishing.ts"

/** What a client's calls have in common. */
export interface ClientOptions {
  /** Whose events and endpoints; a call may name another one. `*`: all tenants. */
  readonly tenant?: string | undefined
  /** How long one request may take, ms, up to 2^31 - 1. (Default: 30,000) */
  readonly timeoutMs?: number | undefined
  /**
   * For how long a request that was not answered, or refused for a reason that may pass, is sent again,
   * ms; 0: never; Infinity: without end. Less than the time for which the installation knows ids of
   * events, which is 10 minutes unless it was set. (Default: 60,000)
   */
  readonly retryForMs?: number | undefined
}

/** All that can be asked of Petrel. */
export interface Client extends Operations {
  /**
   * Publishes an event. When it resolves the broker has it: it will be delivered or dead-lettered. One
   * without an id gets one here, so that sending it again stores it once.
   */
  publish(
    event: NewEvent,
    options?: CallOptions & { readonly tenant?: string | undefined }
  ): Promise<PublishedEvent>
  /** Publishes bytes as they are. Over NATS publish them to `events.<tenant>.<type>` yourself. */
  publishRaw(event: RawEvent, options?: CallOptions): Promise<PublishedEvent>
  /**
   * Publishes many events, as many at once as the server takes. The source is read as fast as they are
   * stored. With `concurrency: 1` batches are stored in their order.
   */
  publishAll<E extends NewEvent>(
    events: Iterable<E> | AsyncIterable<E>,
    options?: PublishAllOptions<E>
  ): Promise<Summary<E>>
  /**
   * Follows failures as they happen, and goes on where it was when the connection is lost. Over NATS
   * subscribe to `petrel.failures.<tenant>.>` yourself.
   */
  live(
    input?: { readonly tenant?: string | undefined; readonly endpoint?: string | undefined },
    options?: LiveOptions
  ): Live
  /** Waits until a job is done, and returns it as it is then. Rejects with JobFailed otherwise. */
  finish(job: Job, options?: FinishOptions): Promise<Job>
}

const usual = { timeoutMs: 30_000, retryForMs: 60_000 }

type OperationId = keyof typeof operations

/** Operations that have functions of their own. */
const ofTheirOwn: ReadonlySet<OperationId> = new Set([
  "events.publish",
  "events.publishRaw",
  "deliveries.live"
])

const checkOffered = (transport: Transport, id: string, { insteadOverNats }: Described): void => {
  if (transport.follower === undefined && insteadOverNats !== undefined)
    throw new TypeError(`${id} is not offered over NATS: ${insteadOverNats}`)
}

const clientOver = (transport: Transport, options: ClientOptions): Client => {
  checkTimes(options)
  const calling: Calling = {
    transport,
    tenant: options.tenant,
    timeoutMs: options.timeoutMs ?? usual.timeoutMs,
    retryForMs: options.retryForMs ?? usual.retryForMs
  }
  const call = async (id: OperationId, input: Input = {}, given: CallOptions = {}) => {
    const operation: Described = operations[id]
    checkOffered(transport, id, operation)
    const request = requestOf(calling, id, operation, input, given)
    return resultOf(request, await send(calling, request, given))
  }
  const list =
    (id: OperationId, field: string) =>
    (input: Input = {}, given: CallOptions = {}) =>
      listOf(
        field,
        (cursor, one) =>
          call(id, cursor === undefined ? input : { ...input, cursor }, one) as Promise<Page>,
        given
      )
  const groups: Record<string, Record<string, unknown>> = {}
  for (const id of Object.keys(operations) as ReadonlyArray<OperationId>) {
    const [group = "", name = ""] = id.split(".")
    const { list: field }: Described = operations[id]
    if (ofTheirOwn.has(id)) continue
    const made =
      field === undefined
        ? (input?: Input, given?: CallOptions) => call(id, input, given)
        : list(id, field)
    groups[group] = { ...groups[group], [name]: made }
  }
  return {
    ...(groups as unknown as Operations),
    publish: (event, given = {}) => publishOne(calling, event, given),
    publishRaw: async (event, given = {}) => {
      checkOffered(transport, "events.publishRaw", operations["events.publishRaw"])
      return publishBytes(calling, event, given)
    },
    publishAll: (events, given = {}) => publishEvents(calling, events, given),
    live: (input = {}, given = {}) => {
      const id = "deliveries.live"
      checkOffered(transport, id, operations[id])
      const requestFrom = (lastEventId: string | undefined) =>
        requestOf(calling, id, operations[id], input, { lastEventId })
      return followFailures(calling, requestFrom, given)
    },
    finish: (job, given = {}) => finishJob(call, job, given)
  }
}

/**
 * Returns a client that asks a console over HTTP. It needs `fetch` alone.
 *
 * @throws TypeError if the URL is none of a server, or a time is out of bounds.
 */
export const httpClient = (options: ClientOptions & HttpPlace): Client =>
  clientOver(overHttp(options), options)

/**
 * Returns a client that asks the consoles over the program's own connection to their broker.
 *
 * @throws TypeError if a time is out of bounds.
 */
export const natsClient = (options: ClientOptions & NatsPlace): Client =>
  clientOver(overNats(options), options)
