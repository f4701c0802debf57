import type { StoredMsg } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { removeIf } from "../../broker/removal.ts"
import { readBatch } from "../../broker/scan.ts"
import type { Addressee } from "../../domain/delivery.ts"
import { readLast } from "./backlog-end.ts"

/**
 * The durable backlogs of a partition's endpoints. No consumer reads them: the partition's owner
 * gets messages in order, and purges what is finished.
 */
export class Backlog {
  readonly #stream: string
  readonly #broker: Broker["Service"]
  /** Of the partition. */
  readonly #index: number

  /** @param index of the partition. */
  static readonly make = (index: number) =>
    Effect.map(Broker, (broker) => new Backlog(broker, index))

  private constructor(broker: Broker["Service"], index: number) {
    this.#broker = broker
    this.#index = index
    this.#stream = broker.names.backlog(index)
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
    return Effect.map(read, (message) => message === null)
  }

  /** Reads the last message of an endpoint from the leader; null where there is none. */
  last(to: Addressee) {
    return this.#withBroker(readLast({ stream: this.#stream, subject: this.#subjectOf(to) }))
  }

  /** Purges an endpoint's messages below a sequence. */
  purge(to: Addressee, below: number) {
    const limits = { filter: this.#subjectOf(to), seq: below }
    return this.#broker.purge("purge what has left a backlog", this.#stream, limits)
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
    return Effect.map(info, ({ state }) => ({
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

  #withBroker<A, E>(work: Effect.Effect<A, E, Broker>): Effect.Effect<A, E> {
    return Effect.provideService(work, Broker, this.#broker)
  }
}
