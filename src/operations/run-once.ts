import { createHash } from "node:crypto"
import { Clock, Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { eraseValue, isConflict, readEntry, writeValue } from "../broker/values.ts"
import { keepLease, takeLease } from "../cluster/work-lease.ts"
import { nobody } from "../domain/token.ts"
import { RefusedRequests } from "../metrics/refused-requests.ts"
import { countText } from "../text/quantities.ts"
import { Busy, Caller } from "./caller.ts"
import { AnswerNotKept, CurrentOnce, KeyInUse, KeyReused, keyKnownMs } from "./idempotency-key.ts"
import { Replied } from "./operation.ts"
import { allTenants } from "./token.ts"

/** Keys of one tenant that are known at the same time: one each 86 s, all day. */
export const maxKeys = 1_000
/** Upper bound of an answer that is kept, bytes: so a tenant has at most 16 MiB of them. */
const maxKeptBytes = 16 * 1024
/** Seconds after which a tenant with all its keys may try again. */
const retryAfter = 60

/** What the bucket of jobs knows of a key. It has neither the key nor the request, but their hashes. */
const Record = Schema.Struct({
  v: Schema.Literal(1),
  /** Of the request. */
  hash: Schema.String,
  /** When it was first tried, ms since the epoch. */
  at: Schema.Finite,
  /** Absent until it was carried out. */
  answer: Schema.optionalKey(
    Schema.Struct({
      /** Absent where it was too large to be kept. */
      output: Schema.optionalKey(Schema.Unknown),
      status: Schema.optionalKey(Schema.Int),
      location: Schema.optionalKey(Schema.String),
      revision: Schema.optionalKey(Schema.Int)
    })
  )
})
type Record = typeof Record.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Record))

const hashOf = (...parts: ReadonlyArray<string>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex")

/** Writes a value as JSON with its fields in one order, whatever order they were given in. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part
  )

/** Fails where a tenant has as many keys as it may have. Several requests at once may pass by some. */
const checkQuota = Effect.fnUntraced(function* (bucket: string, tenant: string) {
  const { streamInfo } = yield* Broker
  const { state } = yield* streamInfo("count idempotency keys", `KV_${bucket}`, {
    subjects_filter: `$KV.${bucket}.once.${tenant}.*`
  })
  if (Object.keys(state.subjects ?? {}).length < maxKeys) return
  const refused = yield* RefusedRequests
  refused.note("idempotency-keys")
  return yield* new Busy({
    message: `the tenant has given ${countText(maxKeys)} Idempotency-Keys within 24 hours, which is the maximum: leave the header out, or wait`,
    retryAfter
  })
})

const answerIn = (
  { answer, hash: known }: Record,
  { hash, schema }: Pick<KeyedRequest, "schema"> & { readonly hash: string }
): Effect.Effect<Option.Option<Replied<unknown>>, AnswerNotKept | KeyReused> => {
  if (known !== hash) return Effect.fail(new KeyReused())
  if (answer === undefined) return Effect.succeed(Option.none())
  const { output, ...rest } = answer
  // Another version may have kept it.
  return Option.match(Schema.decodeUnknownOption(schema)(output), {
    onNone: () => Effect.fail(new AnswerNotKept()),
    onSome: (output) =>
      Effect.succeed(Option.some(new Replied({ output, ...rest, isRepeated: true })))
  })
}

/** What is kept of an answer. */
const keptOf = (
  result: unknown,
  { kept, schema }: Pick<KeyedRequest, "kept" | "schema">
): NonNullable<Record["answer"]> => {
  const { output, ...rest } = result instanceof Replied ? result : { output: result }
  const part = Schema.encodeUnknownSync(schema)(kept(output as never))
  const isSmall = Buffer.byteLength(JSON.stringify(part)) <= maxKeptBytes
  return { ...rest, ...(isSmall ? { output: part } : {}) }
}

/** A request with a key. */
interface KeyedRequest {
  /** Of the operation. */
  readonly id: string
  readonly key: string
  /** All that was decoded of it, but for its headers. */
  readonly asked: unknown
  /** What of its output is kept for repetitions: nothing that is secret. */
  readonly kept: (output: never) => unknown
  /** Of its output, as JSON. */
  readonly schema: Schema.Codec<unknown>
}

/**
 * Carries out a request once for its key, of whichever console it is asked: a repetition gets the
 * answer of the first one. A key belongs to the token, or over NATS to the tenant, for what an answer
 * shows depends on who asks. What fails is forgotten. Where a console dies in the middle, the next
 * repetition goes on as the same `CurrentOnce`.
 */
export const runOnce = Effect.fnUntraced(function* <E, R>(
  { asked, id, kept, key, schema }: KeyedRequest,
  run: Effect.Effect<unknown, E, R>
) {
  const { names } = yield* Broker
  const { by, tenant, token } = yield* Caller
  const bucket = names.buckets.jobs
  const owner = tenant === allTenants ? nobody : tenant
  const name = hashOf(token?.id ?? by, id, key).slice(0, 32)
  const entryKey = `once.${owner}.${name}`
  const hash = hashOf(id, canonical(asked))
  const look = Effect.gen(function* () {
    const { revision, text } = yield* readEntry(bucket, entryKey)
    const record = text === undefined ? undefined : Option.getOrUndefined(decode(text))
    const answer = record === undefined ? Option.none() : yield* answerIn(record, { hash, schema })
    return { revision, record, answer }
  })
  const store = (record: Record, expected: number) =>
    writeValue(bucket, entryKey, JSON.stringify(record), { expected, ttl: keyKnownMs }).pipe(
      Effect.map(({ seq }) => seq),
      Effect.catchIf(isConflict, () => new KeyInUse())
    )

  const first = yield* look
  if (Option.isSome(first.answer)) return first.answer.value
  const lease = yield* takeLease(`lease.once.${owner}.${name}`, by)
  if (lease === undefined) return yield* new KeyInUse()
  return yield* Effect.gen(function* () {
    yield* Effect.forkScoped(keepLease(lease, Effect.undefined))
    // It may have been carried out before the lease was free.
    const known = yield* look
    if (Option.isSome(known.answer)) return known.answer.value
    let { revision } = known
    const claim: Record = known.record ?? { v: 1, hash, at: yield* Clock.currentTimeMillis }
    if (known.record === undefined) {
      yield* checkQuota(bucket, owner)
      revision = yield* store(claim, revision)
    }
    const once = { id: hashOf(name, hash, String(claim.at)), at: claim.at }
    const result = yield* run.pipe(
      Effect.provideService(CurrentOnce, once),
      Effect.tapError(() => Effect.ignore(eraseValue(bucket, entryKey, revision)))
    )
    // It is done, whether the broker takes that or not.
    yield* store({ ...claim, answer: keptOf(result, { kept, schema }) }, revision).pipe(
      Effect.catch((error) =>
        Effect.logWarning("an answer is not kept for repetitions of its request", {
          operation: id,
          why: error.message
        })
      ),
      Effect.uninterruptible
    )
    return result
  }).pipe(Effect.scoped, Effect.ensuring(lease.giveBack))
})
