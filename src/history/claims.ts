import { Clock, Effect, Option, Semaphore } from "effect"
import type { MessageQuery } from "../broker/broker.ts"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { PublishError } from "../broker/publication.ts"
import { seeStream } from "../broker/scan.ts"
import { readUser } from "../broker/user.ts"
import { isConflict } from "../broker/values.ts"
import type { Addressee, RoundIdentity } from "../domain/delivery.ts"
import { roundKey } from "../domain/delivery.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"
import { rawFields } from "./delivery-facts.ts"
import { parseFact } from "./read.ts"

/** Facts that a round has at most once: the action that they record must not be done twice. */
export type ClaimKind = "redelivered" | "replayed" | "discarded"

/** The part of a claim's fact that stays in memory. Times in ms since the epoch. */
export interface Claim {
  /** Sequence in HISTORY. */
  readonly seq: number
  readonly at: number
  readonly deadline: number
  /** Who asked for it. */
  readonly by?: string
}

/**
 * Result of a claim. `mine`: this call stored it. `taken`: it existed before. `either`: it exists,
 * but a failed append leaves open whether this call stored it.
 */
type ClaimResult = "mine" | "taken" | "either"

/** Retries of a request that the broker did not answer, and the pause between them (ms). */
const tries = 20
const retryPauseMs = 500

/** Which claims are opened. */
export interface ClaimsQuery {
  readonly kind: ClaimKind
  readonly target: Addressee
  /** The rounds that may be claimed, by `roundKey`. Claims of others are read and not kept. */
  readonly rounds: ReadonlySet<string>
  /** Claims before are not read: a sequence of HISTORY, or a time in ms since the epoch. */
  readonly from: { readonly fromSeq: number } | { readonly fromTime: number }
  /** Called with each claim of another round that is read, and its sequence. */
  readonly other?: ((of: RoundIdentity, seq: number) => void) | undefined
}

/** Opens the claims of one kind on one endpoint's deliveries. */
export const openClaims = Effect.fnUntraced(function* (query: ClaimsQuery) {
  const claims = new Claims(query, yield* Broker, yield* Clock.Clock, yield* readUser)
  yield* claims.load
  return claims
})

/** Returns the round that a fact claims, with its claim; undefined if the text is no such fact. */
export const claimIn = (text: string, seq: number): (RoundIdentity & Claim) | undefined => {
  const { at, by, deadline = at, eventAt, eventSeq, round } = rawFields(text)
  if (typeof eventSeq !== "number" || typeof eventAt !== "number") return undefined
  if (typeof at !== "number" || typeof deadline !== "number") return undefined
  if (typeof round !== "string") return undefined
  const asker = typeof by === "string" ? { by } : {}
  return { eventSeq, eventAt, round, seq, at, deadline, ...asker }
}

/**
 * The claims of one kind on one endpoint's deliveries. Each claim is appended to the history by
 * compare-and-set on the last fact of its kind and endpoint. So each round has one claim, whatever
 * the number of concurrent claimants and however old the first claim is.
 */
export class Claims {
  readonly #query: ClaimsQuery
  readonly #subject: string
  readonly #broker: Broker["Service"]
  readonly #clock: Clock.Clock
  /** What is looked for, for errors. */
  readonly #operation: string
  readonly #known = new Map<string, Claim>()
  readonly #claiming = Semaphore.makeUnsafe(1)
  /** The last sequence of the subject that is known; 0 if there is none. */
  #last = 0
  /** The broker's user of this connection. */
  readonly user: string | undefined

  constructor(
    query: ClaimsQuery,
    broker: Broker["Service"],
    clock: Clock.Clock,
    user: string | undefined
  ) {
    const { kind, target } = query
    this.#query = query
    this.#subject = broker.names.subjects.fact(
      target.tenant,
      target.endpoint,
      factResult(kind),
      kind
    )
    this.#broker = broker
    this.#clock = clock
    this.#operation = `look for what is ${kind} already`
    this.user = user
  }

  /** Known claims of the rounds, by `roundKey`. */
  get known(): ReadonlyMap<string, Claim> {
    return this.#known
  }

  /** The last claim of the kind and endpoint that was read or made, as a sequence of HISTORY. */
  get last(): number {
    return this.#last
  }

  readonly load = Effect.gen({ self: this }, function* () {
    const { from } = this.#query
    const newest = yield* this.#readNewest()
    this.#last = newest?.seq ?? 0
    // Most endpoints have no claims, and a caller may open many endpoints: skip the scan.
    if (newest === null) return
    const isBefore =
      "fromSeq" in from ? newest.seq < from.fromSeq : newest.time.getTime() < from.fromTime
    if (isBefore) return
    const stream = this.#broker.names.history
    yield* seeStream({ stream, subjects: [this.#subject], ...from }, (message) => {
      this.#hear(message.seq, message.string())
      return false
    })
  })

  /** Reads a claim's whole fact from the stream's leader; undefined if it has expired. */
  read({ seq }: Claim) {
    return this.#read({ seq }).pipe(
      Effect.map((message) =>
        message === null ? undefined : Option.getOrUndefined(parseFact(message.string(), seq))?.fact
      )
    )
  }

  /**
   * Appends the fact unless the round has one of its kind. `at` defaults to now.
   *
   * @param of one of the rounds that were opened.
   */
  claim(
    fact: Omit<Fact, "v" | "kind" | "at" | "user"> & Partial<Pick<Fact, "at">>,
    of: RoundIdentity
  ): Effect.Effect<ClaimResult, BrokerError | PublishError> {
    return this.#claiming.withPermit(
      Effect.suspend(() => {
        const at = this.#clock.currentTimeMillisUnsafe()
        return this.#claim(
          { v: 1, kind: this.#query.kind, at, ...fact, user: this.user },
          roundKey(of)
        )
      })
    )
  }

  readonly #claim = Effect.fnUntraced(
    { self: this },
    function* (fact: Fact, key: string): Effect.fn.Return<ClaimResult, BrokerError | PublishError> {
      let claimed: ClaimResult = "taken"
      for (let left = tries; ; ) {
        if (this.#known.has(key)) return claimed
        const stored = yield* Effect.result(this.#append(fact))
        if (stored._tag === "Success") {
          const { at, deadline = at } = fact
          const { seq } = stored.success
          this.#last = Math.max(this.#last, seq)
          this.#known.set(key, { seq, at, deadline })
          return "mine"
        }
        const error = stored.failure
        if (!isConflict(error)) {
          if (error.reason === "rejected" || error.reason === "no-stream" || --left < 0)
            return yield* error
          claimed = "either"
          yield* Effect.sleep(retryPauseMs)
        }
        const caughtUp = yield* Effect.result(this.#catchUp)
        if (caughtUp._tag === "Failure" && --left < 0) return yield* caughtUp.failure
      }
    }
  )

  #append(fact: Fact) {
    return Effect.suspend(() =>
      this.#broker.publish(this.#subject, JSON.stringify(fact), [
        ["Nats-Expected-Last-Subject-Sequence", String(this.#last)]
      ])
    )
  }

  /** Reads, from the stream's leader, claims that other clients have made since. */
  readonly #catchUp = Effect.gen({ self: this }, function* () {
    while (true) {
      const next = yield* this.#read({ seq: this.#last + 1, next_by_subj: this.#subject })
      if (next === null) break
      this.#hear(next.seq, next.string())
    }
    // The last claim may have expired, or the stream may have been truncated.
    const end = (yield* this.#readNewest())?.seq
    if (end === undefined) this.#last = 0
    else if (end < this.#last) {
      this.#last = end
      for (const [key, { seq }] of this.#known) if (seq > end) this.#known.delete(key)
    }
  })

  #readNewest() {
    return this.#read({ last_by_subj: this.#subject })
  }

  #read(query: MessageQuery) {
    const { names, readMessage } = this.#broker
    return readMessage(this.#operation, names.history, query)
  }

  #hear(seq: number, text: string): void {
    const claimed = claimIn(text, seq)
    if (claimed === undefined) this.#last = Math.max(this.#last, seq)
    else this.#note(claimed)
  }

  #note({ at, by, deadline, seq, ...of }: RoundIdentity & Claim): void {
    this.#last = Math.max(this.#last, seq)
    const key = roundKey(of)
    const claim = { seq, at, deadline, ...(by === undefined ? {} : { by }) }
    if (this.#query.rounds.has(key)) this.#known.set(key, claim)
    else this.#query.other?.(of, seq)
  }
}
