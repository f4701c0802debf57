import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import { endOf, scanQueue, seeStream, storedAt } from "../broker/scan.ts"
import { labelIn, originStreams, referencesIn } from "../domain/backlog-message.ts"
import type { Addressee } from "../domain/delivery.ts"
import { attemptsIn, deliverySubject, eventNameIn } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { eventName } from "../domain/event.ts"
import type { Fact, Place } from "../domain/fact.ts"
import { factResult, successKinds } from "../domain/fact.ts"
import type { GetHeader } from "../domain/header-names.ts"
import { partitionOf } from "../domain/names.ts"
import { decodeFact, eventSeqIn } from "./delivery-facts.ts"

/**
 * Where a delivery may be. It moves from the queue to a schedule or to the backlog, from a schedule
 * to the queue, and from the backlog to a schedule; each attempt and its end are in the history. A
 * search that follows the way in which deliveries move misses none that moves meanwhile.
 */
export type Whereabouts = "queue" | "schedules" | "backlog" | "history"

/** One thing that was found of a delivery. */
export type Sighting = Addressee & {
  /** {@link eventName} of its event. */
  readonly event: string
  readonly round: string
} & (
    | {
        readonly where: Exclude<Whereabouts, "history">
        readonly place: Place
        /** The place that it was moved from: a `placeName`. */
        readonly origin: string | undefined
        /** Requests made in its round, as far as its message tells. */
        readonly attempts: number
        /** Who stored it in a backlog, see `BacklogLabel`; undefined where that is not known. */
        readonly owner?: number | undefined
      }
    | { readonly where: "history"; readonly fact: Fact; readonly seq: number }
  )

/** Returns the `roundKey` of what was found. */
export const roundKeyOf = ({ event, round }: Pick<Sighting, "event" | "round">): string =>
  `${event}.${round}`

/** What to look for, and where. */
export interface LocateQuery {
  /** The partition to look in, or the number of partitions, by which the endpoints have theirs. */
  readonly within: { readonly partition: number } | { readonly partitions: number }
  /** `all` only within one partition. */
  readonly endpoints: ReadonlyArray<Addressee> | "all"
  /** Where to look, in this order. */
  readonly places: ReadonlyArray<Whereabouts>
  /** Where the backlog begins to be read, ms since the epoch. (Default: at its first message) */
  readonly backlogSince?: number
  /** Where the history begins to be read: a sequence, or ms since the epoch. */
  readonly historySince?: { readonly fromSeq: number } | { readonly fromTime: number }
  /** True for the sequences of the events that are looked for. (Default: all) */
  readonly isWanted?: (eventSeq: number) => boolean
}

/**
 * Facts that show that a delivery was there. An audit's `missing` shows the contrary, and a claim of
 * a round comes before its message.
 */
const shownBy = [...successKinds, "attempt-failed", "dead-lettered"] as const

/** Up to this many endpoints, streams are filtered by endpoint; above it they are read whole. */
const maxSingleLookups = 8
/** Readings of a backlog in one search: others may store there without end. */
const maxPasses = 4
/** Partitions or endpoints that are read at the same time. */
const maxConcurrentReads = 4

/** Returns tenant and endpoint of a delivery's subject. */
const addresseeIn = (subject: string): Addressee => {
  const [tenant = "", endpoint = ""] = subject.split(".").slice(-2)
  return { tenant, endpoint }
}

/**
 * Looks for deliveries: in the queue, among schedules, in the backlog, in the history. The one place
 * that answers where a delivery is; the audit has its own reading, since who checks must not share
 * the code of whom it checks.
 *
 * @param see called with each sighting; returns true to end the search.
 */
export const locate = Effect.fnUntraced(function* (
  search: LocateQuery,
  see: (sighting: Sighting) => boolean
) {
  const finder = new Finder(yield* Broker, search, see)
  for (const place of search.places) {
    if (finder.isDone) return
    yield* finder.lookIn(place)
  }
})

/** One search. */
class Finder {
  isDone = false
  readonly #broker: Broker["Service"]
  readonly #search: LocateQuery
  readonly #see: (sighting: Sighting) => boolean
  /** Keys of the endpoints; undefined for all. */
  readonly #keys: ReadonlySet<string> | undefined
  readonly #byPartition: ReadonlyMap<number, ReadonlyArray<Addressee>>

  constructor(
    broker: Broker["Service"],
    search: LocateQuery,
    see: (sighting: Sighting) => boolean
  ) {
    const { endpoints, within } = search
    this.#broker = broker
    this.#search = search
    this.#see = see
    const few = endpoints === "all" ? [] : endpoints
    const keys = few.map(({ endpoint, tenant }) => endpointKey(tenant, endpoint))
    this.#keys = endpoints === "all" ? undefined : new Set(keys)
    this.#byPartition =
      "partition" in within
        ? new Map([[within.partition, few]])
        : Map.groupBy(few, ({ endpoint, tenant }) =>
            partitionOf(tenant, endpoint, within.partitions)
          )
  }

  lookIn(place: Whereabouts): Effect.Effect<void, BrokerError, Broker> {
    if (place === "history") return this.#readHistory()
    const read = {
      queue: this.#scanQueue,
      schedules: this.#scanSchedules,
      backlog: this.#readBacklog
    }[place]
    return Effect.forEach(
      this.#byPartition,
      ([partition, endpoints]) => read(partition, endpoints),
      { concurrency: maxConcurrentReads, discard: true }
    )
  }

  readonly #scanQueue = (partition: number, endpoints: ReadonlyArray<Addressee>) => {
    const { subjects } = this.#broker.names
    const each = endpoints.map(({ endpoint, tenant }) =>
      subjects.delivery(partition, tenant, endpoint)
    )
    return Effect.forEach(
      this.#keys === undefined ? [subjects.deliveriesOf(partition)] : each,
      (subject) => this.#scan("queue", partition, subject),
      { concurrency: maxConcurrentReads, discard: true }
    )
  }

  readonly #scanSchedules = (partition: number) =>
    this.#scan("schedules", partition, this.#broker.names.subjects.schedulesOf(partition))

  /** Deliveries and schedules lie in a work queue, which allows no second consumer. */
  #scan(where: "queue" | "schedules", partition: number, subject: string) {
    const stream = this.#broker.names.deliveries(partition)
    return scanQueue(stream, subject).pipe(
      Stream.takeUntil((message) => {
        const { header, seq, time } = message
        const place = { stream, seq, at: time.getTime() }
        return this.#found(
          where,
          place,
          deliverySubject(message),
          (name) => header.get(name) || undefined
        )
      }),
      Stream.runDrain
    )
  }

  readonly #readBacklog = (partition: number, endpoints: ReadonlyArray<Addressee>) => {
    const { subjects } = this.#broker.names
    const stream = this.#broker.names.backlog(partition)
    const streams = originStreams(this.#broker.names, partition)
    const isFew = this.#keys !== undefined && endpoints.length <= maxSingleLookups
    const range = {
      stream,
      subjects: isFew
        ? endpoints.map(({ endpoint, tenant }) => subjects.backlog(partition, tenant, endpoint))
        : [subjects.backlogOf(partition)],
      fromTime: this.#search.backlogSince,
      headersOnly: true
    }
    return this.#seeToTheEnd(range, (message) => {
      const place = { stream, seq: message.seq, at: storedAt(message) }
      const header = (name: string) => message.headers?.get(name) || undefined
      const packed = referencesIn(message.subject, header, streams)
      const owner = labelIn(header)?.owner
      if (packed === undefined) return this.#found("backlog", place, message.subject, header, owner)
      return packed.some(({ endpoint, origin, progress, round, tenant, ...of }, index) => {
        if (!this.#isWanted(tenant, endpoint)) return false
        const found = { tenant, endpoint, round, event: eventName(of), origin }
        const { attempts } = progress
        const at = { ...place, entry: index + 1 }
        return this.#note({ where: "backlog", ...found, attempts, owner, place: at })
      })
    })
  }

  /**
   * Reads on while messages are stored: an owner puts small messages of a backlog into a new one at its
   * end, and what a reading up to the former end passes by is there.
   */
  readonly #seeToTheEnd = Effect.fnUntraced(
    { self: this },
    function* (...[range, see]: Parameters<typeof seeStream>) {
      let fromSeq: number | undefined
      for (let pass = 0; pass < maxPasses && !this.isDone; pass++) {
        const end = yield* endOf(range.stream)
        if (fromSeq !== undefined && fromSeq > end) return
        yield* seeStream(fromSeq === undefined ? range : { ...range, fromSeq }, see)
        fromSeq = end + 1
      }
    }
  )

  #readHistory() {
    const { history, subjects } = this.#broker.names
    const { endpoints, historySince, isWanted = () => true } = this.#search
    const isFew = endpoints !== "all" && endpoints.length <= maxSingleLookups
    const all = [{ tenant: "*", endpoint: "*" }]
    const range = {
      stream: history,
      subjects: (isFew ? endpoints : all).flatMap(({ endpoint, tenant }) =>
        shownBy.map((kind) => subjects.fact(tenant, endpoint, factResult(kind), kind))
      ),
      ...historySince
    }
    return seeStream(range, (message) => {
      const text = message.string()
      // Decoding a fact costs more than all other steps: filter by its text first.
      if (!isWanted(eventSeqIn(text))) return false
      const fact = Option.getOrUndefined(decodeFact(text))
      const { eventAt, eventSeq, round } = fact ?? {}
      if (fact === undefined || eventSeq === undefined || eventAt === undefined) return false
      const { endpoint, tenant } = fact
      if (round === undefined || !this.#isWanted(tenant, endpoint)) return false
      const event = eventName({ eventSeq, eventAt })
      const { seq } = message
      return this.#note({ where: "history", tenant, endpoint, event, round, fact, seq })
    })
  }

  #found(
    where: Exclude<Whereabouts, "history">,
    place: Place,
    subject: string,
    header: GetHeader,
    owner?: number
  ): boolean {
    const addressee = addresseeIn(subject)
    if (!this.#isWanted(addressee.tenant, addressee.endpoint)) return false
    const event = eventNameIn(header)
    const round = header("petrel-round") ?? ""
    const origin = header("petrel-origin")
    const attempts = attemptsIn(header("petrel-progress"))
    return this.#note({ where, ...addressee, event, round, place, origin, attempts, owner })
  }

  #isWanted(tenant: string, endpoint: string): boolean {
    return this.#keys === undefined || this.#keys.has(endpointKey(tenant, endpoint))
  }

  #note(sighting: Sighting): boolean {
    this.isDone ||= this.#see(sighting)
    return this.isDone
  }
}
