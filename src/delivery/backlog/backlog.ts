import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { Broker, BrokerError } from "../../broker/connection.ts"
import { publishOnce } from "../../broker/publish-once.ts"
import type { PubAck } from "../../broker/publisher.ts"
import { removeIf } from "../../broker/removal.ts"
import { isNoSuchMessage, readBatch, scanQueue } from "../../broker/scan.ts"
import type { Delivery, Progress } from "../../domain/delivery.ts"
import { deliveryHeaders, firstRound, roundKey, roundKeyIn } from "../../domain/delivery.ts"
import { placeName } from "../../domain/fact.ts"
import type { AckHandle } from "../source/ack-handle.ts"

/** How long a leader may take, ms: one that has died meanwhile does not answer, but its successor will. */
const leaderAnswerMs = 3_000

/** An endpoint as subjects name it. */
export interface Addressee {
  readonly tenant: string
  readonly endpoint: string
}

const cameFrom = (origin: string) => (message: StoredMsg) =>
  message.header.get("petrel-origin") === origin

/** A first round of which nothing has been attempted: no other message in a backlog is of its event. */
const isFirstOf = (delivery: Delivery) => {
  const key = roundKey(delivery)
  return ({ header }: StoredMsg) => roundKeyIn((name) => header.get(name)) === key
}

/**
 * The durable waiting rooms of a partition's endpoints. No consumer reads them: the partition's
 * owner gets them in order, and purges what has been finished.
 *
 * @param index of the partition.
 */
export const makeBacklog = Effect.fnUntraced(function* (index: number) {
  const broker = yield* Broker
  const { jsm, names, publisher } = broker
  const stream = names.backlog(index)
  const subjectOf = ({ endpoint, tenant }: Addressee) =>
    names.subjects.backlog(index, tenant, endpoint)
  const ask = <A>(operation: string, run: () => Promise<A>) =>
    Effect.timeoutOrElse(broker.ask(operation, run), {
      duration: leaderAnswerMs,
      orElse: () => Effect.fail(new BrokerError({ operation, cause: new Error("no answer") }))
    })
  const withBroker = Effect.provideService(Broker, broker)

  /** Whether a subject has a certain message beyond a sequence. */
  const find = (subject: string, after: number, isIt: (message: StoredMsg) => boolean) =>
    scanQueue(stream, subject, after + 1).pipe(
      Stream.filter(isIt),
      Stream.runHead,
      Effect.map(Option.isSome),
      withBroker
    )

  return {
    stream,

    /**
     * Stores a delivery at the tail of its endpoint's backlog, once however often it is tried; an
     * untried first round also where it comes there from its event and by the queue.
     *
     * @param after a sequence that is older than any earlier try.
     * @param hasLeft true where it is known to be stored by what came of it.
     */
    store: (
      { body, delivery, place }: Pick<AckHandle, "body" | "delivery" | "place">,
      progress: Progress,
      after: number,
      hasLeft: () => boolean
    ) => {
      const origin = placeName(place)
      const subject = subjectOf(delivery)
      const isFirst = delivery.round === firstRound && progress.attempts === 0
      // An event may come to several endpoints.
      const messageId = `${isFirst ? roundKey(delivery) : origin}.${delivery.endpoint}`
      const publish = publisher.publish(
        subject,
        body,
        deliveryHeaders({ ...delivery, progress, origin }, messageId)
      )
      const isIt = isFirst ? isFirstOf(delivery) : cameFrom(origin)
      // One that a former owner stored lies before what this one has.
      const isAt = ({ seq }: PubAck) =>
        ask("look at a duplicate", () => jsm.streams.getMessage(stream, { seq })).pipe(
          Effect.map((message) => message !== null && isIt(message)),
          Effect.catchIf(isNoSuchMessage, () => Effect.succeed(false))
        )
      return publishOnce(
        publish,
        Effect.suspend(() => (hasLeft() ? Effect.succeed(true) : find(subject, after, isIt))),
        { isAt }
      )
    },

    /** What waits for an endpoint from a sequence on, in order; at most so many messages and bytes. */
    read: (to: Addressee, from: number, messages: number, bytes: number) =>
      withBroker(readBatch(stream, subjectOf(to), from, { batch: messages, max_bytes: bytes })),

    /** True where the leader knows of nothing from a sequence on: other copies may be behind. */
    isEmpty: (to: Addressee, from: number) => {
      const next = { seq: from, next_by_subj: subjectOf(to) }
      const read = ask("look at a backlog", () => jsm.streams.getMessage(stream, next))
      return Effect.map(read, (message) => message === null)
    },

    /** Removes what lies below a sequence. */
    purge: (to: Addressee, below: number) =>
      ask("purge what has left a backlog", () =>
        jsm.streams.purge(stream, { filter: subjectOf(to), seq: below })
      ),

    /** Removes one message from among the others, if it is the one that is meant. */
    remove: (seq: number, isIt: (message: StoredMsg) => boolean) =>
      Effect.asVoid(removeIf("remove a delivery that has ended", stream, seq, isIt)).pipe(
        withBroker
      ),

    /** Endpoints for which something waits, with the number of messages, and the last sequence of all. */
    list: Effect.map(
      ask(`list what waits in ${stream}`, () =>
        jsm.streams.info(stream, { subjects_filter: names.subjects.backlogOf(index) })
      ),
      ({ state }) => ({
        last: state.last_seq,
        waiting: Object.entries(state.subjects ?? {}).map(([subject, count]) => {
          const [tenant = "", endpoint = ""] = subject.split(".").slice(-2)
          return { tenant, endpoint, count }
        })
      })
    )
  }
})

export type Backlog = Effect.Success<ReturnType<typeof makeBacklog>>
