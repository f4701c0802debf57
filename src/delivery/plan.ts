import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/connection.ts"
import { readStream, scanQueue } from "../broker/scan.ts"
import type { Event } from "../domain/event.ts"
import type { Plan } from "../domain/fact.ts"
import { Fact } from "../domain/fact.ts"
import { partitionOf } from "../domain/names.ts"
import { nobody } from "../domain/token.ts"
import type { LiveEndpoint } from "./directory.ts"

/**
 * Endpoints in one part of a plan: with names of full length, a part stays under 256 KiB.
 */
export const partSize = 1_000

/** A part of a plan as the history holds it: what it says, and when it was stored (ms). */
export interface StoredPart {
  readonly plan: Plan
  readonly at: number
}

/**
 * The next part of an event's plan: endpoints whose ids come after `after`, in their order.
 *
 * @param matching all that want the event, sorted by id.
 */
export const nextPart = (
  event: Event,
  matching: ReadonlyArray<LiveEndpoint>,
  part: number,
  after: string
): Plan => {
  const rest = matching.filter(({ config }) => config.id > after)
  const now = rest.slice(0, partSize)
  return {
    part,
    last: now.length === rest.length,
    endpoints: now
      .filter(({ config }) => config.disabled === undefined)
      .map(({ config, revision, window }) => ({
        id: config.id,
        generation: config.generation,
        revision,
        deadline: event.at + window
      })),
    skipped: now
      .filter(({ config }) => config.disabled !== undefined)
      .map(({ config }) => ({ id: config.id, reason: "endpoint-disabled" }))
  }
}

/** Where the part after this one begins. */
export const endOf = (plan: Plan): string =>
  [...plan.endpoints, ...plan.skipped].reduce((last, { id }) => (id > last ? id : last), "")

/** The `routed` fact that stores a part. */
export const routedFact = (event: Event, plan: Plan, at: number, worker: string): Fact => ({
  v: 1,
  kind: "routed",
  at,
  tenant: event.tenant,
  endpoint: nobody,
  event: event.id,
  eventSeq: event.seq,
  type: event.type,
  plan,
  worker,
  ...(event.content.traceparent === undefined ? {} : { trace: event.content.traceparent })
})

const decodeFact = Schema.decodeUnknownOption(Schema.fromJsonString(Fact))

const partOf = (text: string): Option.Option<{ readonly seq: number; readonly part: StoredPart }> =>
  Option.flatMap(decodeFact(text), ({ at, eventSeq, plan }) =>
    plan === undefined || eventSeq === undefined
      ? Option.none()
      : Option.some({ seq: eventSeq, part: { plan, at } })
  )

/** The part that the history holds at a sequence, from its leader. */
export const readPart = Effect.fnUntraced(function* (seq: number) {
  const { ask, jsm, names } = yield* Broker
  const message = yield* ask("read a plan", () => jsm.streams.getMessage(names.history, { seq }))
  return Option.map(message === null ? Option.none() : partOf(message.string()), ({ part }) => part)
})

/**
 * The plans that exist for events the router has not finished: by event sequence, parts in order.
 * Whoever routes such an event follows its plan, however long ago it was made.
 */
export const readUnfinished = Effect.gen(function* () {
  const { ask, jsm, names } = yield* Broker
  const found = new Map<number, Array<StoredPart>>()
  const consumer = yield* ask("look at the router", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  const floor = consumer.ack_floor.stream_seq
  const { state } = yield* ask("look at the events", () => jsm.streams.info(names.events))
  const seq = Math.max(floor + 1, state.first_seq)
  if (seq > state.last_seq) return found
  const first = yield* ask("read the first unrouted event", () =>
    jsm.streams.getMessage(names.events, { seq })
  )
  const fromTime = first?.time.getTime() ?? Date.parse(state.first_ts)
  const subject = names.subjects.fact("*", nobody, "ok", "routed")
  yield* Stream.runForEach(
    readStream({ stream: names.history, subjects: [subject], fromTime }),
    (message) =>
      Effect.sync(() => {
        const stored = Option.getOrUndefined(partOf(message.string()))
        if (stored === undefined || stored.seq <= floor) return
        const parts = found.get(stored.seq) ?? []
        parts[stored.part.plan.part] = stored.part
        found.set(stored.seq, parts)
      })
  )
  return found
})

/**
 * Which of a plan's endpoints have their delivery already: it is told of in the history or still
 * waits. For plans older than the broker's memory of message ids.
 */
export const alreadySent = Effect.fnUntraced(function* (
  event: Event,
  stored: StoredPart,
  partitions: number
) {
  const { names } = yield* Broker
  const sent = new Set<string>()
  yield* Stream.runForEach(
    readStream({
      stream: names.history,
      subjects: [
        names.subjects.fact(event.tenant, "*", "ok", "*"),
        names.subjects.fact(event.tenant, "*", "failure", "*")
      ],
      fromTime: stored.at
    }),
    (message) =>
      Effect.sync(() => {
        const fact = Option.getOrUndefined(decodeFact(message.string()))
        if (fact?.eventSeq === event.seq && fact.endpoint !== nobody) sent.add(fact.endpoint)
      })
  )
  const unknown = stored.plan.endpoints.filter(({ id }) => !sent.has(id))
  yield* Effect.forEach(
    unknown,
    ({ id }) => {
      const partition = partitionOf(event.tenant, id, partitions)
      const subject = names.subjects.delivery(partition, event.tenant, id)
      return Stream.runForEach(scanQueue(names.deliveries(partition), subject), (message) =>
        Effect.sync(() => {
          if (Number(message.header.get("petrel-event-seq")) === event.seq) sent.add(id)
        })
      )
    },
    { concurrency: 4, discard: true }
  )
  return sent
})

/** True where the broker may have forgotten the ids of the messages that a plan led to. */
export const mayBeForgotten = (stored: StoredPart, moveDedupe: number) =>
  Effect.map(Clock.currentTimeMillis, (now) => now - stored.at > moveDedupe / 2)
