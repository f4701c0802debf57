import { Context, Deferred, Effect, Layer, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readStream } from "../../broker/scan.ts"
import { readValues } from "../../broker/values.ts"
import type { TokenRecord } from "../../operations/tokens/token.ts"
import { isTokenOf, tokenIdOf } from "../../operations/tokens/token.ts"
import { decodeToken } from "../../operations/tokens/token-store.ts"

/** Pause before the bucket is read again after a failure. */
const pause = "250 millis"
/** Pause between questions to the bucket's leader how far it is. */
const lagInterval = "400 millis"

/**
 * The tokens of the bucket, kept current by a watch. A revoked token is refused within a second:
 * the leader is asked how far it is, and a watch that is behind is started again.
 */
export class LiveTokens extends Context.Service<
  LiveTokens,
  {
    /**
     * Returns the record of a token; undefined for one that is unknown or was revoked. It may have
     * expired.
     */
    readonly find: (token: string) => TokenRecord | undefined
  }
>()("petrel/api/LiveTokens") {
  /** Ready when all tokens have been read once. */
  static readonly layer = Layer.effect(
    LiveTokens,
    Effect.suspend(() => open())
  )
}

/** Follows the tokens until the watch is behind or fails. */
class TokenTable {
  tokens = new Map<string, TokenRecord>()
  /** Sequence of the bucket up to which everything is known. */
  reached = 0

  hear(key: string, text: string | undefined, seq: number): void {
    const record = text === undefined ? undefined : decodeToken(key, text)
    if (record === undefined) this.tokens.delete(key)
    else this.tokens.set(key, record)
    this.reached = Math.max(this.reached, seq)
  }
}

/** Headers that only delete markers have. */
const marks = ["KV-Operation", "Nats-Marker-Reason"]

const open = Effect.fnUntraced(function* () {
  const { names, onReconnect, streamInfo } = yield* Broker
  const stream = `KV_${names.buckets.tokens}`
  const prefix = `$KV.${names.buckets.tokens}.`
  const first = yield* Deferred.make<void>()
  let current = new TokenTable()

  const lastSeq = Effect.map(
    streamInfo("look at the tokens", stream),
    ({ state }) => state.last_seq
  )

  /** Ends when the leader has had something for a while that the watch has not shown. */
  const untilBehind = (table: TokenTable) =>
    Effect.gen(function* () {
      let goal = 0
      while (table.reached >= goal) {
        goal = yield* lastSeq
        yield* Effect.sleep(lagInterval)
      }
    })

  const follow = Effect.scoped(
    Effect.gen(function* () {
      const again = yield* Deferred.make<void>()
      // A watch may miss what is changed while the connection is gone.
      const forget = onReconnect(() => Deferred.doneUnsafe(again, Effect.void))
      yield* Effect.addFinalizer(() => Effect.sync(forget))
      const table = new TokenTable()
      const from = yield* lastSeq
      yield* Stream.runForEach(readValues(names.buckets.tokens), ({ key, revision, text }) =>
        Effect.sync(() => table.hear(key, text, revision))
      )
      table.reached = Math.max(table.reached, from)
      current = table
      yield* Deferred.succeed(first, undefined)
      const changes = Stream.runForEach(
        readStream({ stream, subjects: [`${prefix}>`], fromSeq: from + 1, follow: true }),
        (message) =>
          Effect.sync(() => {
            const isGone = marks.some((name) => message.headers?.has(name) === true)
            const text = isGone ? undefined : message.string()
            table.hear(message.subject.slice(prefix.length), text, message.seq)
          })
      )
      yield* changes.pipe(
        Effect.raceFirst(Deferred.await(again)),
        Effect.raceFirst(untilBehind(table))
      )
    })
  )

  yield* follow.pipe(
    Effect.catch((error) =>
      Effect.andThen(
        Effect.logDebug("reading the tokens failed; trying again", { why: error.message }),
        Effect.sleep(pause)
      )
    ),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Deferred.await(first)

  return LiveTokens.of({
    find: (token) => {
      const id = tokenIdOf(token)
      const record = id === undefined ? undefined : current.tokens.get(id)
      return record !== undefined && isTokenOf(record, token) ? record : undefined
    }
  })
})
