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
import type { AckHandle } from "../execution/ack-handle.ts"

/**
 * Time limit for an answer of the stream's leader, ms: a leader that has died does not answer, but
 * its successor will.
 */
const leaderAnswerMs = 3_000

/** An endpoint as subjects name it. */
export interface Addressee {
  readonly tenant: string
  readonly endpoint: string
}

const cameFrom = (origin: string) => (message: StoredMsg) =>
  message.header.get("petrel-origin") === origin

/** Matches an untried first round: a backlog holds no other message of that event. */
const isFirstOf = (delivery: Delivery) => {
  const key = roundKey(delivery)
  return ({ header }: StoredMsg) => roundKeyIn((name) => header.get(name)) === key
}

/**
 * The durable backlogs of a partition's endpoints. No consumer reads them: the partition's owner
 * gets messages in order, and purges what is finished.
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

  /** True where a subject has a matching message after a sequence. */
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
     * Stores a delivery at the end of its endpoint's backlog, once however often it is tried. An
     * untried first round is stored once even if it comes both directly from its event and through
     * the queue.
     *
     * @param after a sequence below that of any earlier try.
     * @param hasLeft returns true where the delivery is known to have been stored, by what
     * followed.
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
      // An event may go to several endpoints.
      const messageId = `${isFirst ? roundKey(delivery) : origin}.${delivery.endpoint}`
      const publish = publisher.publish(
        subject,
        body,
        deliveryHeaders({ ...delivery, progress, origin }, messageId)
      )
      const isIt = isFirst ? isFirstOf(delivery) : cameFrom(origin)
      // A duplicate that a former owner stored lies before the sequences that this one searches.
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

    /**
     * Reads what waits for an endpoint from a sequence on, in order, up to a number of messages and
     * bytes.
     */
    read: (to: Addressee, from: number, messages: number, bytes: number) =>
      withBroker(readBatch(stream, subjectOf(to), from, { batch: messages, max_bytes: bytes })),

    /**
     * True where the leader knows of no message from a sequence on. Other replicas may be behind.
     */
    isEmpty: (to: Addressee, from: number) => {
      const next = { seq: from, next_by_subj: subjectOf(to) }
      const read = ask("look at a backlog", () => jsm.streams.getMessage(stream, next))
      return Effect.map(read, (message) => message === null)
    },

    /** Purges an endpoint's messages below a sequence. */
    purge: (to: Addressee, below: number) =>
      ask("purge what has left a backlog", () =>
        jsm.streams.purge(stream, { filter: subjectOf(to), seq: below })
      ),

    /** Removes a single message if it matches. */
    remove: (seq: number, isIt: (message: StoredMsg) => boolean) =>
      Effect.asVoid(removeIf("remove a delivery that has ended", stream, seq, isIt)).pipe(
        withBroker
      ),

    /**
     * Lists endpoints whose backlog has messages, with their number, and the stream's last
     * sequence.
     */
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
