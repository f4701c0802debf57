import { Deferred, Effect, Option, Random, Schema } from "effect"
import { Broker } from "../broker/connection.ts"
import type { PublishError } from "../broker/publisher.ts"
import { eraseValue, isConflict, writeValue } from "../broker/values.ts"

/** How long ownership outlives its holder's last sign of life, ms. */
const defaultTtl = 10_000

const Owner = Schema.Struct({ worker: Schema.String, instance: Schema.String })
const decodeOwner = Schema.decodeUnknownOption(Schema.fromJsonString(Owner))

/** The right to deliver, for as long as it is renewed. */
export interface Ownership {
  /** True while nobody else can be owner: it was renewed within half its life, by a monotonic clock. */
  readonly holds: () => boolean
  /** Waits until it has passed to somebody else. */
  readonly lost: Effect.Effect<void>
}

/**
 * Waits until this worker may deliver, and keeps the right until the scope closes, which gives it
 * back at once. There is one owner for all partitions; another worker says so and stands by.
 *
 * @param ttl how long the right outlives its holder's last sign of life, ms; the broker counts in
 *   whole seconds. The same for all workers. (Default: 10 s)
 */
export const own = Effect.fnUntraced(function* (worker: string, ttl = defaultTtl) {
  const { ask, jsm, names, onReconnect } = yield* Broker
  const bucket = names.buckets.workers
  const renewal = ttl / 5
  const key = "owner.all"
  // Two processes may have been given the same id: only one of them is this owner.
  const instance = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  const value = JSON.stringify({ worker, instance })
  /** After a gap the old owner comes first: nobody else knows whether it is still there. */
  let notBefore = 0
  const forget = onReconnect(() => {
    notBefore = performance.now() + ttl
  })
  yield* Effect.addFinalizer(() => Effect.sync(forget))

  /** Who owns now, and the revision to write over. */
  const look = Effect.gen(function* () {
    const subject = `$KV.${bucket}.${key}`
    const message = yield* ask("look for the owner", () =>
      jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: subject })
    )
    const revision = message?.seq ?? 0
    const ended = message === null || message.data.length === 0
    const holder = ended ? undefined : Option.getOrUndefined(decodeOwner(message.string()))
    return { revision, holder }
  })

  /** When the last write began: the broker counts from no earlier. */
  let written = 0
  const write = (expected: number) =>
    Effect.suspend(() => {
      written = performance.now()
      return writeValue(bucket, key, value, { ttl, expected })
    })

  const take = Effect.gen(function* () {
    const { holder, revision } = yield* look
    // An own write whose answer was lost.
    if (holder?.instance === instance) return { holder: undefined, revision }
    if (holder !== undefined || performance.now() < notBefore)
      return { holder, revision: undefined }
    const ack = yield* write(revision).pipe(
      Effect.catchIf(isConflict, () => Effect.succeed(undefined))
    )
    return { holder: undefined, revision: ack?.seq }
  })

  let said = false
  const waitForIt = Effect.gen(function* () {
    while (true) {
      const taken = yield* Effect.option(take)
      if (Option.isSome(taken)) {
        const { holder, revision } = taken.value
        if (revision !== undefined) return revision
        if (holder !== undefined && !said) {
          said = true
          yield* Effect.logInfo("another worker delivers; this one stands by", {
            owner: holder.worker
          })
        }
      }
      yield* Effect.sleep(renewal / 2)
    }
  })

  let revision = yield* waitForIt
  let renewedAt = written
  const lost = yield* Deferred.make<void>()
  const holds = () => performance.now() - renewedAt < ttl / 2
  let overdue = false

  const renewed = Effect.suspend(() => {
    renewedAt = written
    if (!overdue) return Effect.void
    overdue = false
    return Effect.logInfo("the right to deliver is renewed again")
  })
  const refused = (error: PublishError) =>
    Effect.suspend(() => {
      if (overdue || holds()) return Effect.void
      overdue = true
      return Effect.logWarning(
        "the right to deliver cannot be renewed: nothing new is sent until it can",
        { why: error.message }
      )
    })
  /** An own write whose answer was lost, an end by time, or another owner: looks which. */
  const reconsider = Effect.gen(function* () {
    const now = yield* look
    if (now.holder === undefined || now.holder.instance === instance) {
      revision = now.revision
      return
    }
    renewedAt = Number.NEGATIVE_INFINITY
    yield* Effect.logWarning("another worker delivers now", { owner: now.holder.worker })
    yield* Deferred.succeed(lost, undefined)
  })
  const renew = Effect.suspend(() => write(revision)).pipe(
    Effect.matchEffect({
      onSuccess: ({ seq }) => {
        revision = seq
        return renewed
      },
      onFailure: (error) => (isConflict(error) ? reconsider : refused(error))
    }),
    Effect.ignore
  )

  yield* Effect.addFinalizer(() =>
    // A broker that is gone ends it by time.
    Effect.ignore(Effect.timeoutOption(eraseValue(bucket, key, revision), "1 second"))
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(renewal), renew)))
  return { holds, lost: Deferred.await(lost) } satisfies Ownership
})
