import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { scanQueue, seeStream } from "../broker/scan.ts"
import { entryCount, labelIn, originStreams, referencesIn } from "../domain/backlog-message.ts"
import { deliveryIn } from "../domain/delivery.ts"
import { endpointKeyIn } from "../domain/endpoint.ts"
import { neededMs } from "../policy/event-outlasts.ts"

/**
 * Up to this many messages, all are read. Above it the first and the last of each backlog tell how
 * many were stored from one to the other, those included that were removed in between.
 */
const maxRead = 5_000
/** Messages that are read at the same time. */
const maxConcurrentReads = 16

const headerIn =
  ({ header }: Pick<StoredMsg, "header">) =>
  (name: string) =>
    header.get(name) || undefined

/**
 * Counts the deliveries in backlogs of a partition, by endpoint key, as the stream has them: those
 * that have ended and whose message is not removed yet included. Reads up to 5,000 messages, without
 * bodies; of more, only the first and the last of each backlog, from the leader.
 *
 * @param tenant count only this tenant's. (Default: all)
 * @param endpoint count only this endpoint of the tenant. (Default: all)
 */
export const countBacklogs = Effect.fnUntraced(function* (
  partition: number,
  tenant = "*",
  endpoint = "*"
): Effect.fn.Return<ReadonlyMap<string, number>, BrokerError, Broker> {
  const { names, readMessage, streamInfo } = yield* Broker
  const stream = names.backlog(partition)
  const operation = `count what waits in ${stream}`
  const all = names.subjects.backlog(partition, tenant, endpoint)
  const { state } = yield* streamInfo(operation, stream, { subjects_filter: all })
  const messages = new Map(Object.entries(state.subjects ?? {}))
  const total = [...messages.values()].reduce((sum, count) => sum + count, 0)
  if (total <= maxRead) return total === 0 ? new Map() : yield* countAll(stream, all)
  const countOne = Effect.fnUntraced(function* (subject: string) {
    const [first, last] = yield* Effect.all(
      [
        readMessage(operation, stream, { seq: 1, next_by_subj: subject }),
        readMessage(operation, stream, { last_by_subj: subject })
      ],
      { concurrency: 2 }
    )
    if (first === null || last === null) return [endpointKeyIn(subject), 0] as const
    const own = entryCount(headerIn(first))
    if (first.seq === last.seq) return [endpointKeyIn(subject), own] as const
    const [from, to] = [labelIn(headerIn(first)), labelIn(headerIn(last))]
    // An older version did not number what it stored.
    if (from === undefined || to === undefined || to.stored < from.stored)
      return [...(yield* countAll(stream, subject))][0] ?? ([endpointKeyIn(subject), 0] as const)
    const counted = to.stored - from.stored + own
    return [endpointKeyIn(subject), Math.max(counted, messages.get(subject) ?? 0)] as const
  })
  return new Map(
    yield* Effect.forEach(messages.keys(), countOne, { concurrency: maxConcurrentReads })
  )
})

/** Where a delivery stands in its endpoint's backlog. */
export interface BacklogStanding {
  /** 1 for the first that is sent. */
  readonly position: number
  /** How many wait there. */
  readonly of: number
}

/**
 * Returns where a delivery stands in its endpoint's backlog, by the numbers that messages carry:
 * reads its message, the first and the last from the leader. Those that have ended and whose message
 * is not removed yet count. Undefined where the message is gone, or an older version wrote one of
 * them.
 *
 * @param seq its message in the stream of its partition's backlogs.
 * @param entry which of the message's entries it is, from 1.
 */
export const standingInBacklog = Effect.fnUntraced(function* (
  stream: string,
  seq: number,
  entry = 1
): Effect.fn.Return<BacklogStanding | undefined, BrokerError, Broker> {
  const { readMessage } = yield* Broker
  const operation = "look where a delivery stands in its backlog"
  const own = yield* readMessage(operation, stream, { seq })
  if (own === null) return undefined
  const { subject } = own
  const [first, last] = yield* Effect.all(
    [
      readMessage(operation, stream, { seq: 1, next_by_subj: subject }),
      readMessage(operation, stream, { last_by_subj: subject })
    ],
    { concurrency: 2 }
  )
  const [before, upTo] = [storedBefore(first), storedBefore(own)]
  const stored = last === null ? undefined : labelIn(headerIn(last))?.stored
  if (before === undefined || upTo === undefined || stored === undefined) return undefined
  const standing = { position: upTo - before + entry, of: stored - before }
  return standing.position >= 1 && standing.position <= standing.of ? standing : undefined
})

/**
 * Returns the standing among those that still wait, where their number is known: what has ended was
 * before it.
 */
export const amongWaiting = (
  { of, position }: BacklogStanding,
  waiting: number
): BacklogStanding => {
  const ended = Math.max(0, of - Math.max(1, waiting))
  return { position: Math.max(1, position - ended), of: of - ended }
}

/** Returns how many deliveries were stored in a backlog before those of a message. */
const storedBefore = (message: StoredMsg | null): number | undefined => {
  if (message === null) return undefined
  const label = labelIn(headerIn(message))
  return label === undefined ? undefined : label.stored - entryCount(headerIn(message))
}

const countAll = Effect.fnUntraced(function* (stream: string, subject: string) {
  const counts = new Map<string, number>()
  yield* seeStream({ stream, subjects: [subject], headersOnly: true }, ({ headers, subject }) => {
    const key = endpointKeyIn(subject)
    const count = entryCount((name) => headers?.get(name) || undefined)
    counts.set(key, (counts.get(key) ?? 0) + count)
    return false
  })
  return counts
})

/**
 * Returns how long events must be kept for what waits without its body in backlogs and queues, ms; 0
 * where nothing does. Reads all of them.
 */
export const readNeededEventAge = Effect.fnUntraced(function* (partitions: number) {
  const { names } = yield* Broker
  let needed = 0
  for (let index = 0; index < partitions; index++) {
    const streams = originStreams(names, index)
    yield* seeStream(
      { stream: names.backlog(index), subjects: [">"], headersOnly: true },
      ({ headers, subject }) => {
        const get = (name: string) => headers?.get(name) || undefined
        for (const reference of referencesIn(subject, get, streams) ?? [])
          needed = Math.max(needed, neededMs(reference))
        return false
      }
    )
    yield* Stream.runForEach(scanQueue(names.deliveries(index), ">"), (message) =>
      Effect.sync(() => {
        const delivery = deliveryIn(message)
        if (delivery?.leftBytes !== undefined) needed = Math.max(needed, neededMs(delivery))
      })
    )
  }
  return needed
})
