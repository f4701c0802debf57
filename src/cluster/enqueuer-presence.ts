import { hostname } from "node:os"
import { Clock, Effect, Option, Schedule, Schema, Semaphore, Stream } from "effect"
import { Broker, BrokerError } from "../broker/connection.ts"
import { elapsedMs } from "../broker/elapsed.ts"
import { PublishError } from "../broker/publisher.ts"
import { readStream } from "../broker/scan.ts"
import { eraseValue, writeValue } from "../broker/values.ts"
import { signs } from "./membership.ts"
import { defaultTtl } from "./ownership.ts"

/**
 * The sign of life of who stores deliveries without being a worker, under `sender.<instance>` in the
 * bucket of workers: the number of partitions must not change meanwhile.
 */
const Enqueuer = Schema.Struct({
  v: Schema.Literal(1),
  /** A replay or a redelivery, and to which endpoint. */
  what: Schema.String,
  by: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  /** ms since the epoch */
  startedAt: Schema.Number
})
export type Sender = typeof Enqueuer.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Enqueuer))

/** Who stores deliveries at this moment without being a worker. */
export const readEnqueuers = Effect.gen(function* () {
  const { names } = yield* Broker
  const bucket = names.buckets.workers
  const found = new Map<string, Sender>()
  yield* readStream({ stream: `KV_${bucket}`, subjects: [`$KV.${bucket}.sender.*`] }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const sender = Option.getOrUndefined(decode(message.string()))
        if (sender === undefined) found.delete(message.subject)
        else found.set(message.subject, sender)
      })
    )
  )
  return [...found.values()]
})

/** How often, and at what intervals (ms), the broker is asked again that did not answer. */
const askAgain = { times: 20, pause: 500 }

const patiently = <E>(asking: Effect.Effect<void, E, Broker>) =>
  Effect.retry(asking, {
    times: askAgain.times,
    schedule: Schedule.spaced(askAgain.pause),
    while: (error) =>
      (error instanceof BrokerError && error.code === undefined) ||
      (error instanceof PublishError && error.code === 0)
  })

export interface PresenceOptions<E> extends Pick<Sender, "what" | "by"> {
  /** Fails where the number of partitions has changed or is being changed. */
  readonly unchanged: Effect.Effect<void, E, Broker>
  /** How long others count on it after its last sign of life, ms. (Default: 10 s) */
  readonly ttl?: number
}

/**
 * Gives signs of life until the scope closes, so that nobody begins to change the number of
 * partitions. Who changes it announces that and then looks for others; this is known and then looks
 * for an announcement: at least one of the two refuses.
 *
 * @returns passes at once while others know of this one. Where they may have missed it, it waits
 *   for the broker, makes itself known again, and fails if the partitions have changed. To be asked
 *   before each message that is stored.
 */
export const announcePresence = Effect.fnUntraced(function* <E>(options: PresenceOptions<E>) {
  const { by, ttl = defaultTtl, unchanged, what } = options
  const { names } = yield* Broker
  const bucket = names.buckets.workers
  const key = `sender.${crypto.randomUUID()}`
  const sender: Sender = {
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
    yield* writeValue(bucket, key, JSON.stringify(sender), { ttl })
    heardAt = at
  })
  const one = yield* Semaphore.make(1)
  const isSafe = () => isSure && isHeard()
  const comeBack = one.withPermit(
    Effect.gen(function* () {
      while (!isSafe()) {
        yield* patiently(Effect.andThen(write, unchanged))
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
    Effect.forever(Effect.andThen(Effect.sleep(ttl / signs), Effect.ignore(one.withPermit(write))))
  )
  return safe
})
