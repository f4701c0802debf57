import type { StoredMsg } from "@nats-io/jetstream"
import { Cause, Deferred, Effect, Exit, Semaphore } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import { headerOf } from "../../broker/headers.ts"
import type { DeliveryReference } from "../../domain/backlog-message.ts"
import type { EventContents, EventMessage } from "../../domain/event.ts"
import { eventContentsIn, eventName } from "../../domain/event.ts"
import type { GetHeader } from "../../domain/header-names.ts"
import { EventCache } from "./event-cache.ts"

/** Names an event that is to be read, and the size of its body, bytes. */
export type EventReference = Pick<DeliveryReference, "bytes" | "eventAt" | "eventSeq" | "tenant">

/**
 * Events that are read by one request or, where one does not suffice, by requests one after the
 * other. Sequences are inclusive.
 */
export interface EventRun {
  readonly from: number
  readonly to: number
  readonly wanted: ReadonlyArray<EventReference>
}

/**
 * Events this far apart are read together with those between them: up to three events that are not
 * wanted cost less than another request.
 */
const maxStep = 4
/** Maximum messages of one request. */
export const maxRunMessages = 256
/** Maximum bytes of one request with several messages. */
export const maxRunBytes = 1024 * 1024
/** What the broker sends with a body, bytes, roughly. */
const overheadBytes = 512
/** Bounds of the requests that are made at once: the broker drops a connection that takes more. */
const burst = { items: 64, bytes: 4 * 1024 * 1024 }

/** Divides events into those that are read together, in order of sequence. */
export const runsOf = (wanted: ReadonlyArray<EventReference>): ReadonlyArray<EventRun> => {
  const runs: Array<{ from: number; to: number; wanted: Array<EventReference> }> = []
  for (const one of [...wanted].sort((a, b) => a.eventSeq - b.eventSeq)) {
    const { eventSeq } = one
    const last = runs.at(-1)
    const isNear =
      last !== undefined && eventSeq - last.to <= maxStep && eventSeq - last.from < maxRunMessages
    if (isNear) {
      last.to = eventSeq
      last.wanted.push(one)
    } else runs.push({ from: eventSeq, to: eventSeq, wanted: [one] })
  }
  return runs
}

/** The bytes that a request may bring, roughly. */
const bytesOf = ({ from, to, wanted }: EventRun): number => {
  const bytes = wanted.reduce((sum, one) => sum + one.bytes + overheadBytes, 0)
  return from === to ? bytes : Math.min(maxRunBytes, (bytes * (to - from + 1)) / wanted.length)
}

/**
 * Divides items, in order, into groups of at most so many items and bytes. An item that is larger
 * than that is a group of its own.
 */
export const grouped = <A>(
  items: ReadonlyArray<A>,
  bytesOf: (item: A) => number,
  most: { readonly items: number; readonly bytes: number }
): ReadonlyArray<ReadonlyArray<A>> => {
  const groups: Array<Array<A>> = []
  let bytes = 0
  for (const item of items) {
    const size = bytesOf(item)
    const last = groups.at(-1)
    if (last !== undefined && last.length < most.items && bytes + size <= most.bytes) {
      last.push(item)
      bytes += size
    } else {
      groups.push([item])
      bytes = size
    }
  }
  return groups
}

/** Divides runs into bursts that are read at once, one burst after the other. */
export const burstsOf = (runs: ReadonlyArray<EventRun>): ReadonlyArray<ReadonlyArray<EventRun>> =>
  grouped(runs, bytesOf, burst)

/** Bytes of events that a worker keeps for endpoints that are about as far behind as another. */
const defaultCacheBytes = 16 * 1024 * 1024
/** What an event takes in memory besides its body and headers, bytes, roughly. */
const keptOverheadBytes = 512
/**
 * Bursts that a worker reads at the same time, of up to 4 MiB each, and how many of them are one
 * tenant's.
 */
const maxBursts = { worker: 16, tenant: 4 }
/** Events of which the leader is asked at the same time. */
const leaderQuestions = 16
/** From so many events on the leader is first asked where its stream begins. */
const manyMissing = 4

interface EventBodiesOptions {
  /** Maximum bytes in memory that are under no delivery. (Default: 16 MiB) */
  readonly cacheBytes?: number | undefined
}

/** An event that was read, for whichever endpoint. */
interface ReadEvent extends EventMessage {
  readonly header: GetHeader
  /** What it takes in memory, roughly. */
  readonly bytes: number
}

/** Tells what an event is. */
type Settle = (reference: EventReference, event: ReadEvent | "gone") => void

/** What came of a reading that several may wait for. */
type Outcome = ReadEvent | "gone" | "broken off"

/**
 * Reads events from EVENTS for deliveries that wait as references to them. Events that are read for
 * one endpoint are kept for others for a while, and who wants an event that is being read waits for
 * that.
 */
export class EventBodies {
  readonly #broker: Broker["Service"]
  /** By `eventName`. */
  readonly #cache: EventCache<ReadEvent>
  readonly #underWay = new Map<string, Deferred.Deferred<Outcome, BrokerError>>()
  readonly #bursts = Semaphore.makeUnsafe(maxBursts.worker)
  readonly #turns = new Map<string, { users: number; readonly turns: Semaphore.Semaphore }>()

  static readonly make = (options: EventBodiesOptions = {}) =>
    Effect.map(Broker, (broker) => new EventBodies(broker, options))

  private constructor(broker: Broker["Service"], { cacheBytes }: EventBodiesOptions) {
    this.#broker = broker
    this.#cache = new EventCache(cacheBytes ?? defaultCacheBytes)
  }

  /** Bytes of events that are kept. */
  get bytes(): number {
    return this.#cache.bytes
  }

  /**
   * Reads events of one tenant. `gone` stands for one that the leader of the stream does not have.
   * All bodies are in memory together: callers bound their sum.
   *
   * @param forwards names of the publisher's headers that the endpoint gets.
   * @returns what they tell, in the order given. Fails with BrokerError.
   */
  readonly read = Effect.fnUntraced(
    { self: this },
    function* (
      references: ReadonlyArray<EventReference>,
      forwards: ReadonlyArray<string> | undefined
    ): Effect.fn.Return<ReadonlyArray<EventContents | "gone">, BrokerError> {
      const found = new Map<string, ReadEvent | "gone">()
      while (true) {
        const { awaited, own } = yield* Effect.acquireUseRelease(
          Effect.sync(() => this.#claim(references, found)),
          (claimed) => Effect.as(this.#readOwn(claimed.own, found), claimed),
          (claimed, exit) => Effect.sync(() => this.#release(claimed.own, exit))
        )
        if (own.length === 0 && awaited.length === 0) break
        for (const [name, outcome] of awaited) {
          const event = yield* Deferred.await(outcome)
          if (event !== "broken off") found.set(name, event)
        }
      }
      return references.map((reference) => {
        const event = found.get(eventName(reference))
        if (event === undefined || event === "gone") return "gone"
        return eventContentsIn(event, event.header, this.#broker.names, forwards) ?? "gone"
      })
    }
  )

  /** Returns what is not known yet: what somebody else is reading, and what is left to this reader. */
  #claim(references: ReadonlyArray<EventReference>, found: Map<string, ReadEvent | "gone">) {
    const own = new Map<string, EventReference>()
    const awaited = new Map<string, Deferred.Deferred<Outcome, BrokerError>>()
    for (const reference of references) {
      const name = eventName(reference)
      if (found.has(name) || own.has(name)) continue
      const kept = this.#cache.get(name)
      const underWay = this.#underWay.get(name)
      if (kept !== undefined) found.set(name, kept)
      else if (underWay !== undefined) awaited.set(name, underWay)
      else {
        own.set(name, reference)
        this.#underWay.set(name, Deferred.makeUnsafe())
      }
    }
    return { own: [...own.values()], awaited: [...awaited] }
  }

  /** Reads what this reader has claimed, and tells it to those who wait for it. */
  #readOwn(
    own: ReadonlyArray<EventReference>,
    found: Map<string, ReadEvent | "gone">
  ): Effect.Effect<void, BrokerError> {
    const settle: Settle = (reference, event) => {
      const name = eventName(reference)
      found.set(name, event)
      if (event !== "gone") this.#cache.add(reference.tenant, name, event, event.bytes)
      this.#tell(name, Exit.succeed(event))
    }
    return Effect.forEach(
      burstsOf(runsOf(own)),
      (burst) => this.#inTurn(burst, this.#readBurst(burst, settle)),
      { discard: true }
    )
  }

  /** Ends the wait of others for what this reader has claimed and not read. */
  #release(own: ReadonlyArray<EventReference>, exit: Exit.Exit<unknown, BrokerError>): void {
    if (Exit.isSuccess(exit)) return
    const error = Cause.findErrorOption(exit.cause)
    const outcome =
      error._tag === "Some" ? Exit.fail(error.value) : Exit.succeed("broken off" as const)
    for (const reference of own) this.#tell(eventName(reference), outcome)
  }

  #tell(name: string, outcome: Exit.Exit<Outcome, BrokerError>): void {
    const waiting = this.#underWay.get(name)
    this.#underWay.delete(name)
    if (waiting !== undefined) Deferred.doneUnsafe(waiting, outcome)
  }

  /** Waits for the tenant's turn. A tenant holds up others no longer than its few bursts take. */
  #inTurn<A, E>(burst: ReadonlyArray<EventRun>, work: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const tenant = burst[0]?.wanted[0]?.tenant ?? ""
      const turn = this.#turns.get(tenant) ?? {
        users: 0,
        turns: Semaphore.makeUnsafe(maxBursts.tenant)
      }
      turn.users++
      this.#turns.set(tenant, turn)
      return Effect.ensuring(
        turn.turns.withPermit(this.#bursts.withPermit(work)),
        Effect.sync(() => {
          if (--turn.users === 0) this.#turns.delete(tenant)
        })
      )
    })
  }

  readonly #readBurst = Effect.fnUntraced(
    { self: this },
    function* (burst: ReadonlyArray<EventRun>, settle: Settle) {
      const missing: Array<EventReference> = []
      const readRun = (run: EventRun) =>
        Effect.map(this.#readRun(run), (messages) => {
          for (const reference of run.wanted) {
            const message = messages.get(reference.eventSeq)
            if (isIt(reference, message)) settle(reference, readEventOf(message))
            else missing.push(reference)
          }
        })
      yield* Effect.forEach(burst, readRun, { concurrency: "unbounded", discard: true })
      if (missing.length === 0) return
      const first = missing.length < manyMissing ? 0 : yield* this.#firstOfLeader
      yield* Effect.forEach(
        missing,
        (reference) =>
          Effect.map(this.#askLeader(reference, first), (event) => settle(reference, event)),
        { concurrency: leaderQuestions, discard: true }
      )
    }
  )

  /** Reads a run from any replica: one that is behind does not have the last events. */
  readonly #readRun = Effect.fnUntraced({ self: this }, function* ({ from, to, wanted }: EventRun) {
    const { batch, names } = this.#broker
    const isWanted = new Set(wanted.map(({ eventSeq }) => eventSeq))
    const found = new Map<number, StoredMsg>()
    let next = from
    while (next <= to) {
      const limits = { batch: Math.min(maxRunMessages, to - next + 1), max_bytes: maxRunBytes }
      const messages = yield* batch(names.events, ">", next, limits)
      for (const message of messages) if (isWanted.has(message.seq)) found.set(message.seq, message)
      const last = messages.at(-1)
      if (last === undefined) break
      next = last.seq + 1
    }
    return found
  })

  /** Returns an event as the leader has it: only its answer proves that it is gone. */
  #askLeader(
    reference: EventReference,
    first: number
  ): Effect.Effect<ReadEvent | "gone", BrokerError> {
    const { names, readMessage } = this.#broker
    const { eventSeq } = reference
    if (eventSeq < first) return Effect.succeed("gone")
    const question = readMessage(`read event ${eventSeq}`, names.events, { seq: eventSeq })
    return Effect.map(question, (message) =>
      message !== null && isIt(reference, message) ? readEventOf(message) : "gone"
    )
  }

  /** The first sequence that the leader has. */
  get #firstOfLeader() {
    const { names, streamInfo } = this.#broker
    const question = streamInfo("look where the events begin", names.events)
    return Effect.map(question, ({ state }) => state.first_seq)
  }
}

/** True where a message is the event: a truncated stream may have another one at its sequence. */
const isIt = (
  { eventAt, eventSeq }: EventReference,
  message: StoredMsg | undefined
): message is StoredMsg =>
  message !== undefined && message.seq === eventSeq && message.time.getTime() === eventAt

/** Returns a copy: a message is a part of what its connection has received, and would keep all of it. */
const readEventOf = ({ data, header, seq, subject, time }: StoredMsg): ReadEvent => {
  let bytes = keptOverheadBytes + data.length
  for (const [name, values] of header) bytes += name.length + (values[0]?.length ?? 0)
  const at = time.getTime()
  return { subject, seq, at, body: new Uint8Array(data), header: headerOf(header), bytes }
}
