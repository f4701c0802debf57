import { Effect, Stream } from "effect"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage, scanQueue } from "../../broker/scan.ts"
import { parseDelivery } from "../../domain/delivery.ts"
import { partitionOf } from "../../domain/names.ts"
import { readThrough } from "./reading.ts"
import type { About } from "./record.ts"

/** A delivery that waits in a stream. */
export interface Waiter extends About {
  /** When it is given up, ms since the epoch. */
  readonly deadline: number
  readonly stream: string
  readonly seq: number
}

type See = (waiter: Waiter) => void
type Header = (name: string) => string | undefined

const show = (see: See, stream: string, seq: number, subject: string, header: Header) => {
  const target = header("Nats-Schedule-Target") || subject
  const delivery = parseDelivery(target, (name) => header(name) || undefined)
  if (delivery !== undefined) see({ ...delivery, stream, seq })
}

const lastOf = Effect.fnUntraced(function* (stream: string) {
  const { ask, jsm } = yield* Broker
  const { state } = yield* ask(`look at ${stream}`, () => jsm.streams.info(stream))
  return state.last_seq
})

/**
 * Looks through everything that waits in a partition: its queue with its schedules, its backlog, and
 * then what came into either meanwhile. What moves goes to the end of where it moves to, so what is
 * not seen in one place is seen in the other, unless it moves to and fro between the looks.
 */
const lookThrough = Effect.fnUntraced(function* (partition: number, see: See) {
  const { names } = yield* Broker
  const [queue, backlog] = [names.deliveries(partition), names.backlog(partition)]
  const lookAtQueue = (from: number) =>
    Stream.runForEach(scanQueue(queue, ">", from), ({ header, seq, subject }) =>
      Effect.sync(() => show(see, queue, seq, subject, (name) => header.get(name)))
    )
  const lookAtBacklog = (from: number, to: number) =>
    readThrough(
      { stream: backlog, subjects: [">"], from, to, headersOnly: true },
      ({ message, seq }) =>
        show(see, backlog, seq, message.subject, (name) => message.headers?.get(name))
    )
  const firstQueued = yield* lastOf(queue)
  yield* lookAtQueue(1)
  const firstMoved = yield* lastOf(backlog)
  yield* lookAtBacklog(1, firstMoved)
  yield* lookAtQueue(firstQueued + 1)
  yield* lookAtBacklog(firstMoved + 1, yield* lastOf(backlog))
})

/** Looks through everything that waits. */
export const lookEverywhere = (partitions: number, see: See) =>
  Effect.forEach(
    Array.from({ length: partitions }, (_, index) => index),
    (partition) => lookThrough(partition, see),
    { concurrency: 4, discard: true }
  )

/** Everything under a subject, one by one from the stream's leader, as it is when it is asked. */
const lookAtLeader = Effect.fnUntraced(function* (stream: string, subject: string, see: See) {
  const { ask, jsm } = yield* Broker
  let seq = 1
  while (true) {
    const query = { seq, next_by_subj: subject }
    const message = yield* ask(`look for a delivery in ${stream}`, () =>
      jsm.streams.getMessage(stream, query)
    ).pipe(Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null)))
    if (message === null) return
    show(see, stream, message.seq, message.subject, (name) => message.header.get(name))
    seq = message.seq + 1
  }
})

/**
 * Looks for certain deliveries wherever they may wait, twice over, for they may move meanwhile; asks
 * nobody but the leaders.
 */
export const lookFor = Effect.fnUntraced(function* (
  lost: ReadonlyArray<About>,
  partitions: number,
  see: See
) {
  const { names } = yield* Broker
  const { subjects } = names
  const endpoints = new Map(lost.map((round) => [`${round.tenant}.${round.endpoint}`, round]))
  const rooms = new Map<string, string>()
  for (const { endpoint, tenant } of endpoints.values()) {
    const partition = partitionOf(tenant, endpoint, partitions)
    rooms.set(subjects.laterOf(partition), names.deliveries(partition))
    rooms.set(subjects.delivery(partition, tenant, endpoint), names.deliveries(partition))
    rooms.set(subjects.backlog(partition, tenant, endpoint), names.backlog(partition))
  }
  yield* Effect.forEach([...rooms, ...rooms], ([subject, stream]) =>
    lookAtLeader(stream, subject, see)
  )
})
