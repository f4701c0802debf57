import { hostname } from "node:os"
import { Clock, Effect, Option, Schedule, Schema, Semaphore, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { BrokerError } from "../broker/broker-error.ts"
import { PublishError } from "../broker/publication.ts"
import { readStream, storedAt } from "../broker/scan.ts"
import { eraseValue, hasOutlived, readEntry, writeValue } from "../broker/values.ts"
import { elapsedMs } from "../time/elapsed.ts"
import { defaultTtl } from "./ownership.ts"
import { beatsPerTtl } from "./roster.ts"

/**
 * The heartbeat of a process that stores deliveries without being a worker, under
 * `enqueuer.<instance>` in the workers bucket. The number of partitions must not change while there
 * is one.
 */
const Enqueuer = Schema.Struct({
  v: Schema.Literal(1),
  /** A replay or a redelivery, and its endpoint. */
  what: Schema.String,
  by: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  /** ms since the epoch */
  startedAt: Schema.Number
})
type Enqueuer = typeof Enqueuer.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Enqueuer))

/** Reads the processes that store deliveries now without being workers. */
export const readEnqueuers = Effect.gen(function* () {
  const { names } = yield* Broker
  const bucket = names.buckets.workers
  const found = new Map<string, Enqueuer>()
  yield* readStream({ stream: `KV_${bucket}`, subjects: [`$KV.${bucket}.enqueuer.*`] }).pipe(
    Stream.runForEach((message) =>
      Effect.gen(function* () {
        const ttl = message.headers?.get("Nats-TTL")
        const enqueuer = (yield* hasOutlived(bucket, ttl, storedAt(message)))
          ? undefined
          : Option.getOrUndefined(decode(message.string()))
        if (enqueuer === undefined) found.delete(message.subject)
        else found.set(message.subject, enqueuer)
      })
    )
  )
  return [...found.values()]
})

/** Number of retries and the pause between them (ms) if the broker does not answer. */
const askAgain = { times: 20, pause: 500 }

const untilStored = <E>(asking: Effect.Effect<void, E, Broker>) =>
  Effect.retry(asking, {
    times: askAgain.times,
    schedule: Schedule.spaced(askAgain.pause),
    while: (error) =>
      (error instanceof BrokerError && error.code === undefined) ||
      (error instanceof PublishError && error.code === 0)
  })

const keyOf = (instance: string): string => `enqueuer.${instance}`

/** Returns whether an enqueuer lives, as far as its heartbeats tell. */
export const isEnqueuing = Effect.fnUntraced(function* (instance: string) {
  const { names } = yield* Broker
  const { text } = yield* readEntry(names.buckets.workers, keyOf(instance))
  return text !== undefined
})

interface PresenceOptions<E> extends Pick<Enqueuer, "what" | "by"> {
  /** Tells it from all others. */
  readonly instance: string
  /**
   * Done after the first heartbeat, and after each before which others may have counted it as
   * dead. Fails if the number of partitions has changed or is being changed.
   */
  readonly returned: Effect.Effect<void, E, Broker>
  /** How long others count this process after its last heartbeat, ms. (Default: 10 s) */
  readonly ttl?: number
}

/**
 * Sends heartbeats until the scope closes, so that nobody begins to change the number of
 * partitions. Whoever changes it announces the change and then looks for enqueuers; an enqueuer
 * announces itself and then looks for a change. So at least one of the two refuses.
 *
 * @returns an effect to run before each message that is stored. It passes at once while the
 * heartbeat is valid. If others may have missed it, the effect waits for the broker, writes the
 * heartbeat again, and fails if the partitions have changed.
 */
export const announcePresence = Effect.fnUntraced(function* <E>(options: PresenceOptions<E>) {
  const { by, instance, returned, ttl = defaultTtl, what } = options
  const { names } = yield* Broker
  const bucket = names.buckets.workers
  const key = keyOf(instance)
  const enqueuer: Enqueuer = {
    v: 1,
    what,
    by,
    host: hostname(),
    pid: process.pid,
    startedAt: yield* Clock.currentTimeMillis
  }
  let isSure = false
  let heardAt = Number.NEGATIVE_INFINITY
  const isHeard = () => elapsedMs() - heardAt < ttl / 2

  const write = Effect.gen(function* () {
    if (!isHeard()) isSure = false
    const at = elapsedMs()
    yield* writeValue(bucket, key, JSON.stringify(enqueuer), { ttl })
    heardAt = at
  })
  const one = yield* Semaphore.make(1)
  const isSafe = () => isSure && isHeard()
  const comeBack = one.withPermit(
    Effect.gen(function* () {
      while (!isSafe()) {
        yield* untilStored(Effect.andThen(write, returned))
        isSure = true
      }
    })
  )
  const safe = Effect.suspend(() => (isSafe() ? Effect.void : comeBack))

  yield* Effect.addFinalizer(() =>
    one.withPermit(eraseValue(bucket, key)).pipe(Effect.timeoutOption("1 second"), Effect.ignore)
  )
  yield* safe
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(Effect.sleep(ttl / beatsPerTtl), Effect.ignore(one.withPermit(write)))
    )
  )
  return safe
})
