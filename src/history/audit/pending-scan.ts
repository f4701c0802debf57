import { Effect, Stream } from "effect"
import { Broker } from "../../broker/connection.ts"
import { isNoSuchMessage, scanQueue } from "../../broker/scan.ts"
import { identifyDelivery, parseDelivery } from "../../domain/delivery.ts"
import { partitionOf } from "../../domain/names.ts"
import type { DeadReason } from "../../domain/outcome.ts"
import { readThrough } from "./reading.ts"
import type { About, RoundAt } from "./record.ts"
import { roundName } from "./record.ts"

/** A delivery that waits in a stream. */
export interface PendingMessage extends About {
  /** When it is given up, ms since the epoch; undefined where this version cannot read its message. */
  readonly deadline: number | undefined
  /** It has ended for this reason, and waits for room among the dead letters. */
  readonly ends?: DeadReason | undefined
  readonly stream: string
  readonly seq: number
}

/** A message that waits in a stream and that this version cannot read. */
export interface Unreadable {
  readonly stream: string
  readonly seq: number
  readonly tenant: string
  readonly endpoint: string
  /** The delivery that it is; undefined where its headers do not say. */
  readonly about: About | undefined
}

type See = (waiter: PendingMessage) => void
type SeeUnreadable = (message: Unreadable) => void
type Header = (name: string) => string | undefined

const show = (
  see: See,
  stream: string,
  seq: number,
  subject: string,
  header: Header,
  seeUnreadable?: SeeUnreadable
) => {
  const target = header("Nats-Schedule-Target") || subject
  const get = (name: string) => header(name) || undefined
  const delivery = parseDelivery(target, get)
  if (delivery !== undefined) {
    const { ends } = delivery.progress
    return see({ ...delivery, ends, stream, seq })
  }
  const about = identifyDelivery(target, get)
  if (about !== undefined) see({ ...about, deadline: undefined, stream, seq })
  const [tenant = "", endpoint = ""] = target.split(".").slice(-2)
  seeUnreadable?.({ stream, seq, tenant, endpoint, about })
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
const lookThrough = Effect.fnUntraced(function* (
  partition: number,
  see: See,
  seeUnreadable: SeeUnreadable
) {
  const { names } = yield* Broker
  const [queue, backlog] = [names.deliveries(partition), names.backlog(partition)]
  const lookAtQueue = (from: number) =>
    Stream.runForEach(scanQueue(queue, ">", from), ({ header, seq, subject }) =>
      Effect.sync(() => show(see, queue, seq, subject, (name) => header.get(name), seeUnreadable))
    )
  const lookAtBacklog = (from: number, to: number) =>
    readThrough(
      { stream: backlog, subjects: [">"], from, to, headersOnly: true },
      ({ message, seq }) =>
        show(
          see,
          backlog,
          seq,
          message.subject,
          (name) => message.headers?.get(name),
          seeUnreadable
        )
    )
  const firstQueued = yield* lastOf(queue)
  yield* lookAtQueue(1)
  const firstMoved = yield* lastOf(backlog)
  yield* lookAtBacklog(1, firstMoved)
  yield* lookAtQueue(firstQueued + 1)
  yield* lookAtBacklog(firstMoved + 1, yield* lastOf(backlog))
})

/** Looks through everything that waits. */
export const scanAll = (partitions: number, see: See, seeUnreadable: SeeUnreadable) =>
  Effect.forEach(
    Array.from({ length: partitions }, (_, index) => index),
    (partition) => lookThrough(partition, see, seeUnreadable),
    { concurrency: 4, discard: true }
  )

/** Of what was seen, so many are looked for at a leader at the same time. */
const maxConcurrentReads = 16

/** Whether a message is in its stream, as the leader knows it. */
export const isStillThere = Effect.fnUntraced(function* ({
  seq,
  stream
}: Pick<PendingMessage, "seq" | "stream">) {
  const { ask, jsm } = yield* Broker
  return yield* ask(`look for a delivery in ${stream}`, () =>
    jsm.streams.getMessage(stream, { seq })
  ).pipe(
    Effect.map((message) => message !== null),
    Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false))
  )
})
/** Partitions that are looked through at the same time. */
const partitionsAtOnce = 4

/**
 * Shows those under a subject that are wanted and that the stream's leader has. It has no answer of
 * many messages, so it is asked only about what any copy shows; a scan ends where the leader says.
 */
const lookIn = Effect.fnUntraced(function* (
  stream: string,
  subject: string,
  wanted: ReadonlySet<string>,
  see: See
) {
  const seen: Array<PendingMessage> = []
  const note = (waiter: PendingMessage) => {
    if (wanted.has(roundName(waiter))) seen.push(waiter)
  }
  yield* Stream.runForEach(scanQueue(stream, subject), (message) =>
    Effect.sync(() =>
      show(note, stream, message.seq, message.subject, (name) => message.header.get(name))
    )
  )
  const there = yield* Effect.filter(seen, isStillThere, { concurrency: maxConcurrentReads })
  for (const waiter of there) see(waiter)
})

/**
 * Looks for certain deliveries wherever they may wait, twice over, for they may move meanwhile; each
 * that is shown is where it is as the leader knows it.
 */
export const scanFor = Effect.fnUntraced(function* (
  lost: ReadonlyArray<RoundAt>,
  partitions: number,
  see: See
) {
  const { names } = yield* Broker
  const { subjects } = names
  const wanted = new Set(lost.map(roundName))
  const endpoints = new Map(lost.map((round) => [`${round.tenant}.${round.endpoint}`, round]))
  const partitionRooms = new Map<number, Map<string, string>>()
  for (const { endpoint, tenant } of endpoints.values()) {
    const partition = partitionOf(tenant, endpoint, partitions)
    const rooms = partitionRooms.get(partition) ?? new Map<string, string>()
    partitionRooms.set(partition, rooms)
    rooms.set(subjects.schedulesOf(partition), names.deliveries(partition))
    rooms.set(subjects.delivery(partition, tenant, endpoint), names.deliveries(partition))
    rooms.set(subjects.backlog(partition, tenant, endpoint), names.backlog(partition))
  }
  // One room after the other, in the order that a delivery moves in.
  const lookThroughThem = (rooms: ReadonlyMap<string, string>) =>
    Effect.forEach(rooms, ([subject, stream]) => lookIn(stream, subject, wanted, see), {
      discard: true
    })
  yield* Effect.forEach(
    partitionRooms.values(),
    (rooms) => Effect.andThen(lookThroughThem(rooms), lookThroughThem(rooms)),
    { concurrency: partitionsAtOnce, discard: true }
  )
})
