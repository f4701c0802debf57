import { Clock, Effect, Option, Semaphore, Stream } from "effect"
import { Broker, type BrokerError } from "../broker/connection.ts"
import type { PublishError } from "../broker/publisher.ts"
import { isNoSuchMessage, readStream } from "../broker/scan.ts"
import { readUser } from "../broker/user.ts"
import { isConflict } from "../broker/values.ts"
import type { Delivery, RoundIdentity } from "../domain/delivery.ts"
import { roundKey } from "../domain/delivery.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { parseFact } from "./read.ts"

/** Facts that a round has at most once: the action that they record must not be done twice. */
export type ClaimKind = "redelivered" | "replayed" | "discarded"

/**
 * The part of a claim's fact that stays in memory: a replay may have millions. Times in ms since
 * the epoch.
 */
export interface Claim {
  /** Sequence in HISTORY. */
  readonly seq: number
  readonly at: number
  readonly deadline: number
}

/**
 * Result of a claim. `mine`: this call stored it. `taken`: it existed before. `either`: it exists,
 * but a failed append leaves open whether this call stored it.
 */
export type Claimed = "mine" | "taken" | "either"

/** Retries of a request that the broker did not answer, and the pause between them (ms). */
const tries = 20
const retryPauseMs = 500

/**
 * The claims of one kind on one endpoint's deliveries. Each claim is appended to the history by
 * compare-and-set on the last fact of its kind and endpoint. So each round has one claim, whatever
 * the number of concurrent claimants and however old the first claim is.
 *
 * @param since skip claims that were stored before this time (ms since the epoch).
 */
export const openClaims = Effect.fnUntraced(function* (
  kind: ClaimKind,
  { endpoint, tenant }: Pick<Delivery, "tenant" | "endpoint">,
  since: number
) {
  const { ask, jsm, names, publisher } = yield* Broker
  const clock = yield* Clock.Clock
  const user = yield* readUser
  const subject = names.subjects.fact(tenant, endpoint, factResult(kind), kind)
  const known = new Map<string, Claim>()
  const one = yield* Semaphore.make(1)
  const what = `look for what is ${kind} already`

  const newest = ask(what, () => jsm.streams.getMessage(names.history, { last_by_subj: subject }))
  const first = yield* newest
  let last = first?.seq ?? 0

  const note = (seq: number, { at, deadline = at, eventAt, eventSeq, round }: Fact) => {
    last = Math.max(last, seq)
    if (eventSeq === undefined || eventAt === undefined || round === undefined) return
    known.set(roundKey({ eventSeq, eventAt, round }), { seq, at, deadline })
  }
  const hear = (seq: number, text: string) => {
    const stored = parseFact(text, seq)
    if (stored._tag === "Some") note(seq, stored.value.fact)
    else last = Math.max(last, seq)
  }
  // Most endpoints have no claims, and a caller may open many endpoints: skip the scan.
  if (first !== null && first.time.getTime() >= since)
    yield* Stream.runForEach(
      readStream({ stream: names.history, subjects: [subject], fromTime: since }),
      (message) => Effect.sync(() => hear(message.seq, message.string()))
    )

  /** Reads, from the stream's leader, claims that other clients have made since. */
  const catchUp = Effect.gen(function* () {
    while (true) {
      const query = { seq: last + 1, next_by_subj: subject }
      const next = yield* ask(what, () => jsm.streams.getMessage(names.history, query))
      if (next === null) break
      hear(next.seq, next.string())
    }
    // The last claim may have expired, or the stream may have been truncated.
    const end = (yield* newest)?.seq
    if (end === undefined) last = 0
    else if (end < last) {
      last = end
      for (const [key, { seq }] of known) if (seq > end) known.delete(key)
    }
  })

  const append = (fact: Fact) =>
    Effect.suspend(() =>
      publisher.publish(subject, JSON.stringify(fact), [
        ["Nats-Expected-Last-Subject-Sequence", String(last)]
      ])
    )

  const claim = Effect.fnUntraced(function* (
    fact: Fact,
    key: string
  ): Effect.fn.Return<Claimed, BrokerError | PublishError> {
    let claimed: Claimed = "taken"
    for (let left = tries; ; ) {
      if (known.has(key)) return claimed
      const stored = yield* Effect.result(append(fact))
      if (stored._tag === "Success") {
        note(stored.success.seq, fact)
        return "mine"
      }
      const error = stored.failure
      if (!isConflict(error)) {
        if (error.reason === "rejected" || error.reason === "no-stream" || --left < 0)
          return yield* error
        claimed = "either"
        yield* Effect.sleep(retryPauseMs)
      }
      const caughtUp = yield* Effect.result(catchUp)
      if (caughtUp._tag === "Failure" && --left < 0) return yield* caughtUp.failure
    }
  })

  return {
    /** The broker's user of this connection. */
    user,
    /** Known claims, by `roundKey`. */
    known: known as ReadonlyMap<string, Claim>,
    /** Reads a claim's whole fact from the stream's leader; undefined if it has expired. */
    read: ({ seq }: Claim) =>
      ask(what, () => jsm.streams.getMessage(names.history, { seq })).pipe(
        Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null)),
        Effect.map((message) =>
          message === null
            ? undefined
            : Option.getOrUndefined(parseFact(message.string(), seq))?.fact
        )
      ),
    /** Appends the fact unless the round has one of its kind. `at` defaults to now. */
    claim: (
      fact: Omit<Fact, "v" | "kind" | "at" | "user"> & Partial<Pick<Fact, "at">>,
      of: RoundIdentity
    ) =>
      one.withPermit(
        Effect.suspend(() =>
          claim({ v: 1, kind, at: clock.currentTimeMillisUnsafe(), ...fact, user }, roundKey(of))
        )
      )
  }
})

export type Claims = Effect.Success<ReturnType<typeof openClaims>>
