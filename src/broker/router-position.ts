import { Effect, Option, Schema } from "effect"
import { Broker } from "./broker.ts"
import { ifFound, streamNotFound } from "./broker-error.ts"
import { remakeConsumer, routerConsumer } from "./consumers.ts"
import { writeValue } from "./values.ts"

/** Up to where all events are routed. */
const Position = Schema.Struct({
  seq: Schema.Int,
  /** When the event there was stored, ms since the epoch: a truncated stream reuses sequences. */
  at: Schema.Number
})

/** Key in the bucket of workers. */
const key = "router.position"

const Stored = Schema.fromJsonString(Position)
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeSync(Stored)

/** Stores up to which sequence all events are routed, for the case that the consumer is removed. */
export const notePosition = Effect.fnUntraced(function* (seq: number) {
  const { names, readMessage } = yield* Broker
  const event = yield* readMessage("look at a routed event", names.events, { seq })
  if (event === null) return
  yield* writeValue(names.buckets.workers, key, encode({ seq, at: event.time.getTime() }))
})

/** Returns up to which sequence all events are routed, as far as it is stored; 0 if it is not. */
export const readPosition = Effect.gen(function* () {
  const { names, readMessage, streamInfo } = yield* Broker
  const { workers } = names.buckets
  const entry = yield* ifFound(
    readMessage("look how far routing is", `KV_${workers}`, {
      last_by_subj: `$KV.${workers}.${key}`
    }),
    streamNotFound
  )
  const noted = Option.getOrUndefined(decode(entry?.string()))
  if (noted === undefined) return 0
  const event = yield* readMessage("look at a routed event", names.events, { seq: noted.seq })
  if (event !== null) return event.time.getTime() === noted.at ? noted.seq : 0
  const { state } = yield* streamInfo("look at the events", names.events)
  return noted.seq < state.first_seq ? noted.seq : 0
})

/**
 * Makes the routers' consumer again if somebody removed it. Events that it delivers once more are
 * looked up, and nothing is delivered twice.
 *
 * @param ackWait ms
 */
export const remakeRouter = Effect.fnUntraced(function* (ackWait: number) {
  const { names } = yield* Broker
  yield* remakeConsumer(names.events, routerConsumer(names, ackWait), readPosition)
})
