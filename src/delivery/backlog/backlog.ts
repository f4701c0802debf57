import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { BrokerError } from "../../broker/broker-error.ts"
import { publishOnce } from "../../broker/publish-once.ts"
import type { PubAck, PublishError } from "../../broker/publisher.ts"
import { removeIf } from "../../broker/removal.ts"
import { readBatch, scanQueue } from "../../broker/scan.ts"
import type { Addressee, Delivery, Progress } from "../../domain/delivery.ts"
import { deliveryHeaders, firstRound, roundKey, roundKeyIn } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { placeName } from "../../domain/fact.ts"
import type { AckHandle } from "../execution/ack-handle.ts"

/**
 * Time limit for an answer of the stream's leader, ms: a leader that has died does not answer, but
 * its successor will.
 */
const leaderAnswerMs = 3_000
/** Approximate size of a message besides its body, bytes. */
const headerBytes = 600

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
 */
export class Backlog {
  readonly #stream: string
  readonly #broker: Broker["Service"]
  /** Of the partition. */
  readonly #index: number
  readonly #stored: (key: string, bytes: number) => void

  /**
   * @param index of the partition.
   * @param stored called with the endpoint key and the bytes of each message that is stored.
   */
  static readonly make = (
    index: number,
    stored: (key: string, bytes: number) => void = () => undefined
  ) => Effect.map(Broker, (broker) => new Backlog(broker, index, stored))

  private constructor(
    broker: Broker["Service"],
    index: number,
    stored: (key: string, bytes: number) => void
  ) {
    this.#broker = broker
    this.#stored = stored
    this.#index = index
    this.#stream = broker.names.backlog(index)
  }

  /**
   * Stores a delivery at the end of its endpoint's backlog, once however often it is tried. An
   * untried first round is stored once even if it comes both directly from its event and through
   * the queue.
   *
   * @param after a sequence below that of any earlier try.
   * @param hasLeft returns true where the delivery is known to have been stored, by what followed.
   */
  store(
    { body, delivery, place }: Pick<AckHandle, "body" | "delivery" | "place">,
    progress: Progress,
    after: number,
    hasLeft: () => boolean
  ): Effect.Effect<PubAck, PublishError> {
    const origin = placeName(place)
    const subject = this.#subjectOf(delivery)
    const isFirst = delivery.round === firstRound && progress.attempts === 0
    // An event may go to several endpoints.
    const messageId = `${isFirst ? roundKey(delivery) : origin}.${delivery.endpoint}`
    const publication = this.#broker
      .publish(subject, body, deliveryHeaders({ ...delivery, progress, origin }, messageId))
      .pipe(
        Effect.tap(({ duplicate }) =>
          Effect.sync(() => {
            const key = endpointKey(delivery.tenant, delivery.endpoint)
            if (!duplicate) this.#stored(key, body.length + headerBytes)
          })
        )
      )
    const isIt = isFirst ? isFirstOf(delivery) : cameFrom(origin)
    // A duplicate that a former owner stored lies before the sequences that this one searches.
    const isAt = ({ seq }: PubAck) => this.#isAt(seq, isIt)
    return publishOnce(
      publication,
      Effect.suspend(() => (hasLeft() ? Effect.succeed(true) : this.#find(subject, after, isIt))),
      { isAt }
    )
  }

  /**
   * Reads what waits for an endpoint from a sequence on, in order, up to a number of messages and
   * bytes.
   */
  read(to: Addressee, from: number, messages: number, bytes: number) {
    const limits = { batch: messages, max_bytes: bytes }
    return this.#withBroker(readBatch(this.#stream, this.#subjectOf(to), from, limits))
  }

  /** True where the leader knows of no message from a sequence on. Other replicas may be behind. */
  isEmpty(to: Addressee, from: number) {
    const next = { seq: from, next_by_subj: this.#subjectOf(to) }
    const read = this.#broker.readMessage("look at a backlog", this.#stream, next)
    return Effect.map(this.#bounded(read), (message) => message === null)
  }

  /** Purges an endpoint's messages below a sequence. */
  purge(to: Addressee, below: number) {
    const limits = { filter: this.#subjectOf(to), seq: below }
    return this.#bounded(this.#broker.purge("purge what has left a backlog", this.#stream, limits))
  }

  /** Removes a single message if it matches. */
  remove(seq: number, isIt: (message: StoredMsg) => boolean) {
    return this.#withBroker(
      Effect.asVoid(removeIf("remove a delivery that has ended", this.#stream, seq, isIt))
    )
  }

  /**
   * Lists endpoints whose backlog has messages, with their number, and the stream's last sequence.
   */
  get list() {
    const subjects_filter = this.#broker.names.subjects.backlogOf(this.#index)
    const operation = `list what waits in ${this.#stream}`
    const info = this.#broker.streamInfo(operation, this.#stream, { subjects_filter })
    return Effect.map(this.#bounded(info), ({ state }) => ({
      last: state.last_seq,
      waiting: Object.entries(state.subjects ?? {}).map(([subject, count]) => {
        const [tenant = "", endpoint = ""] = subject.split(".").slice(-2)
        return { tenant, endpoint, count }
      })
    }))
  }

  #subjectOf({ endpoint, tenant }: Addressee): string {
    return this.#broker.names.subjects.backlog(this.#index, tenant, endpoint)
  }

  /** Bounds how long the stream's leader is waited for. */
  #bounded<A>(question: Effect.Effect<A, BrokerError>) {
    const operation = `ask for ${this.#stream}`
    return Effect.timeoutOrElse(question, {
      duration: leaderAnswerMs,
      orElse: () => Effect.fail(new BrokerError({ operation, cause: new Error("no answer") }))
    })
  }

  #withBroker<A, E>(work: Effect.Effect<A, E, Broker>): Effect.Effect<A, E> {
    return Effect.provideService(work, Broker, this.#broker)
  }

  /** True where a subject has a matching message after a sequence. */
  #find(subject: string, after: number, isIt: (message: StoredMsg) => boolean) {
    const found = scanQueue(this.#stream, subject, after + 1).pipe(
      Stream.filter(isIt),
      Stream.runHead
    )
    return this.#withBroker(Effect.map(found, Option.isSome))
  }

  /** True where a sequence holds a matching message. */
  #isAt(seq: number, isIt: (message: StoredMsg) => boolean) {
    const read = this.#broker.readMessage("look at a duplicate", this.#stream, { seq })
    return Effect.map(this.#bounded(read), (message) => message !== null && isIt(message))
  }
}
