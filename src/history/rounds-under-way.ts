import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { seeStream } from "../broker/scan.ts"
import { eraseValue, isConflict, readValues, writeValue } from "../broker/values.ts"
import type { RoundIdentity } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { factResult } from "../domain/fact.ts"
import { claimIn } from "./claims.ts"
import type { About, RoundAt } from "./fact-record.ts"

/**
 * Rounds that a process begins, under `rounds.<instance>` in the workers bucket. It is written
 * before the first of them is claimed, and erased when each claimed one has its message or its end.
 * What a process leaves that dies in between is finished from it.
 */
const RoundsUnderWay = Schema.Struct({
  v: Schema.Literal(1),
  kind: Schema.Literals(["redelivered", "replayed"]),
  tenant: Schema.String,
  endpoint: Schema.String,
  /** The claims of these rounds come behind it: a sequence of HISTORY. */
  behind: Schema.Int,
  by: Schema.String,
  /** ms since the epoch */
  at: Schema.Number
})
export type RoundsUnderWay = typeof RoundsUnderWay.Type

const encode = Schema.encodeSync(Schema.fromJsonString(RoundsUnderWay))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(RoundsUnderWay))

const prefix = "rounds."

/** Stores that rounds are being begun. */
export const storeUnderWay = Effect.fnUntraced(function* (
  instance: string,
  rounds: Omit<RoundsUnderWay, "v" | "at">
) {
  const { names } = yield* Broker
  const at = yield* Clock.currentTimeMillis
  const record = encode({ v: 1, ...rounds, at })
  yield* writeValue(names.buckets.workers, `${prefix}${instance}`, record)
})

/** Removes the record of rounds of which none is left in the middle. */
export const eraseUnderWay = Effect.fnUntraced(function* (instance: string, revision?: number) {
  const { names } = yield* Broker
  yield* eraseValue(names.buckets.workers, `${prefix}${instance}`, revision).pipe(
    // Its process has written it again.
    Effect.catchIf(isConflict, () => Effect.void)
  )
})

/** What a process has stored of the rounds that it begins. */
export interface StoredUnderWay {
  readonly instance: string
  readonly revision: number
  readonly rounds: RoundsUnderWay
}

/** Reads which rounds are being begun, or were left in the middle. */
export const readUnderWay = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const bucket = names.buckets.workers
  const { state } = yield* streamInfo("look for rounds under way", `KV_${bucket}`, {
    subjects_filter: `$KV.${bucket}.${prefix}*`
  })
  const none: ReadonlyArray<StoredUnderWay> = []
  // Usually there are none: no consumer is made for them.
  if (Object.keys(state.subjects ?? {}).length === 0) return none
  const stored = yield* Stream.runCollect(readValues(bucket, `${prefix}*`))
  return stored.flatMap(({ key, revision, text }): ReadonlyArray<StoredUnderWay> => {
    const rounds = Option.getOrUndefined(decode(text))
    return rounds === undefined ? [] : [{ instance: key.slice(prefix.length), revision, rounds }]
  })
})

/** Claims that are looked at together. */
const maxTogether = 10_000

/**
 * Reads the next claimed rounds from a sequence of HISTORY on, 10,000 at most, and the sequence of the
 * last. There are none at the end.
 */
export const claimedFrom = Effect.fnUntraced(function* (
  { endpoint, kind, tenant }: RoundsUnderWay,
  fromSeq: number
) {
  const { names } = yield* Broker
  const rounds: Array<RoundIdentity> = []
  let last = fromSeq
  const subjects = [names.subjects.fact(tenant, endpoint, factResult(kind), kind)]
  yield* seeStream({ stream: names.history, subjects, fromSeq }, (message) => {
    const claim = claimIn(message.string(), message.seq)
    last = message.seq
    if (claim === undefined) return false
    const { eventAt, eventSeq, round } = claim
    rounds.push({ eventSeq, eventAt, round })
    return rounds.length === maxTogether
  })
  return { rounds, last }
})

/**
 * Finds claimed rounds that have no message yet and get one: their process is about to store it, or a
 * worker does, once it finds that the process has died.
 *
 * @param of reads only about the endpoints of these rounds.
 * @param before what was stored of such rounds before their messages were looked for: it may be erased.
 * @param see called with each claimed round of theirs, also with one that has ended.
 */
export const findBegun = Effect.fnUntraced(function* (
  of: ReadonlyArray<RoundAt>,
  before: ReadonlyArray<StoredUnderWay>,
  see: (round: About) => void
) {
  if (of.length === 0) return
  const endpoints = new Set(of.map(({ endpoint, tenant }) => endpointKey(tenant, endpoint)))
  for (const { rounds: begun } of [...before, ...(yield* readUnderWay)]) {
    const { behind, endpoint, tenant } = begun
    if (!endpoints.has(endpointKey(tenant, endpoint))) continue
    for (let from = behind + 1; ; ) {
      const { last, rounds } = yield* claimedFrom(begun, from)
      if (rounds.length === 0) break
      for (const round of rounds) see({ tenant, endpoint, ...round })
      from = last + 1
    }
  }
})
