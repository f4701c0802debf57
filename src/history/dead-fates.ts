import type { StreamInfo } from "@nats-io/jetstream"
import { Effect, Stream } from "effect"
import { Broker } from "../broker/broker.ts"
import { readThrough } from "../broker/bulk-read.ts"
import { undroppedSince } from "../broker/kept-since.ts"
import { readStream } from "../broker/scan.ts"
import { countSince } from "../broker/survey-streams.ts"
import { maxClockSkewMs } from "../domain/clock-bounds.ts"
import { firstRound, roundKey } from "../domain/delivery.ts"
import type { EventIdentity } from "../domain/event.ts"
import type { Fact } from "../domain/fact.ts"
import type { DeadLetterOwner } from "./dead-letters.ts"
import { readDeadLetters } from "./dead-letters.ts"
import { rawFields } from "./delivery-facts.ts"
import { numberIn, readRecord } from "./fact-record.ts"
import { readLateDeliveries } from "./late-deliveries.ts"

/** State of the round that a redelivered dead letter began. Times in ms since the epoch. */
export interface Fate {
  readonly round: string
  readonly at: number
  readonly by: string | undefined
  /** `waiting` while the round is open, otherwise how it ended. */
  outcome: "waiting" | "delivered" | "delivered-late" | "dead-lettered"
  endedAt?: number
  /** Id of the new dead letter, if the round was dead-lettered. */
  dead?: number
}

/** Which redeliveries are read. */
interface FatesRange {
  /** Only those of these dead letters; what is read of others is not kept. (Default: all) */
  readonly ids?: ReadonlySet<number>
  /** Only those that were recorded then or later, ms since the epoch. (Default: all) */
  readonly since?: number
}

/** A redelivered dead letter and the state of its new round. */
interface SentAgain extends Pick<Fact, "tenant" | "endpoint">, EventIdentity {
  readonly id: number
  readonly fate: Fate
}

/** With more endpoints than this, the history is read as a whole and not filtered by endpoint. */
const maxSingleLookups = 8
/** A gap of more sequences without an open round is skipped by starting a new read behind it. */
const far = 5_000

/** The needed fields of a fact about a round; there may be millions. */
interface RoundFact {
  readonly tenant: string
  readonly endpoint: string
  readonly eventSeq: number
  readonly eventAt: number
  readonly round: string
  readonly at: number
  readonly kind: unknown
  readonly by: string | undefined
  readonly dead: number | undefined
}

/**
 * Occurs in each fact about a round that routing began, and in no other: JSON escapes the quotes
 * inside a string.
 */
const ofFirstRound = `"round":${JSON.stringify(firstRound)}`

/** Undefined for a fact about a round that routing began, and for text that is no such fact. */
const roundFactIn = (text: string): RoundFact | undefined => {
  if (text.includes(ofFirstRound)) return undefined
  const record = rawFields(text)
  const { at, by, dead, endpoint, eventAt, eventSeq, kind, round, tenant } = record
  if (typeof tenant !== "string" || typeof endpoint !== "string") return undefined
  if (typeof round !== "string" || typeof at !== "number") return undefined
  if (typeof eventSeq !== "number" || !Number.isSafeInteger(eventSeq)) return undefined
  if (typeof eventAt !== "number") return undefined
  return {
    ...{ tenant, endpoint, eventSeq, eventAt, round, at, kind },
    by: typeof by === "string" ? by : undefined,
    dead: typeof dead === "number" ? dead : undefined
  }
}

const keyOf = (fact: RoundFact): string => `${fact.tenant}.${fact.endpoint}.${roundKey(fact)}`

/** A round that a redelivery began, and the sequence of its fact in HISTORY. */
interface ClaimedRound {
  readonly seq: number
  readonly fate: Fate
}

/**
 * Finds the ends of rounds that redeliveries began. A read stops when no round before its position
 * is open: most rounds end soon after they begin, and a month of other facts may lie between two
 * redeliveries.
 *
 * @param rounds in the order of the history.
 */
const endsOf = Effect.fnUntraced(function* (
  targets: ReadonlyArray<readonly [tenant: string, endpoint: string]>,
  rounds: ReadonlyArray<ClaimedRound>,
  byRound: ReadonlyMap<string, ClaimedRound>
) {
  const { names } = yield* Broker
  const { subjects } = names
  const range = {
    stream: names.history,
    subjects: targets.flatMap(([tenant, endpoint]) => [
      subjects.fact(tenant, endpoint, "ok", "delivered"),
      subjects.fact(tenant, endpoint, "failure", "dead-lettered")
    ])
  }
  let passed = 0
  let open = 0
  const passTo = (seq: number) => {
    for (let next = rounds[passed]; next !== undefined && next.seq < seq; next = rounds[++passed])
      if (next.fate.outcome === "waiting") open++
  }
  const note = (seq: number, fact: RoundFact) => {
    const found = byRound.get(keyOf(fact))
    if (found === undefined || found.fate.outcome !== "waiting") return
    const { fate } = found
    if (found.seq < seq) open--
    fate.outcome = fact.kind === "delivered" ? "delivered" : "dead-lettered"
    fate.endedAt = fact.at
    if (fact.dead !== undefined) fate.dead = fact.dead
  }
  /** True if no round is open, and the next one is far ahead or does not exist. */
  const mayLeave = (seq: number) => {
    if (open > 0) return false
    const next = rounds[passed]
    return next === undefined || next.seq - seq > far
  }
  for (let isLeft = true; isLeft; ) {
    const begin = rounds[passed]
    if (begin === undefined) return
    isLeft = false
    yield* readStream({ ...range, fromSeq: begin.seq }).pipe(
      Stream.takeUntil((message) => {
        const { seq } = message
        passTo(seq)
        const fact = roundFactIn(message.string())
        if (fact !== undefined) note(seq, fact)
        isLeft = mayLeave(seq)
        return isLeft
      }),
      Stream.runDrain
    )
  }
})

/** Reads the redelivered dead letters, each with the state of its new round, from the history. */
const readSentAgain = Effect.fnUntraced(function* (
  query: DeadLetterOwner,
  { ids, since = 0 }: FatesRange
) {
  const { names } = yield* Broker
  const tenant = query.endpoint?.tenant ?? query.tenant ?? "*"
  const all: Array<SentAgain> = []
  const rounds: Array<ClaimedRound> = []
  const byRound = new Map<string, ClaimedRound>()
  const targets = new Map<string, readonly [tenant: string, endpoint: string]>()
  yield* readStream({
    stream: names.history,
    subjects: [names.subjects.fact(tenant, query.endpoint?.id ?? "*", "ok", "redelivered")],
    fromTime: since
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const fact = roundFactIn(message.string())
        if (fact?.dead === undefined || ids?.has(fact.dead) === false) return
        const { at, by, dead, endpoint, eventAt, eventSeq, round, tenant } = fact
        const claimed: ClaimedRound = {
          seq: message.seq,
          fate: { round, at, by, outcome: "waiting" }
        }
        targets.set(`${tenant}.${endpoint}`, [tenant, endpoint])
        rounds.push(claimed)
        byRound.set(keyOf(fact), claimed)
        all.push({ id: dead, tenant, endpoint, eventSeq, eventAt, fate: claimed.fate })
      })
    )
  )
  if (all.length === 0) return all
  const read = targets.size <= maxSingleLookups ? [...targets.values()] : [["*", "*"] as const]
  yield* endsOf(read, rounds, byRound)
  const late = yield* readLateDeliveries(query)
  for (const sent of all) {
    const { fate } = sent
    const delivered = late({ ...sent, round: fate.round })
    if (delivered === undefined || fate.outcome === "delivered") continue
    fate.outcome = "delivered-late"
    fate.endedAt = delivered.at
  }
  return all
})

/**
 * Reads the state of the rounds that redelivered dead letters began, by the dead letters' ids.
 *
 * @param query selects by tenant and endpoint only.
 */
export const readFates = (query: DeadLetterOwner, range: FatesRange = {}) =>
  Effect.map(
    readSentAgain(query, range),
    (all): ReadonlyMap<number, Fate> => new Map(all.map(({ fate, id }) => [id, fate]))
  )

/** Maximum number of facts, and of dead letters, that are read for a count: a second's worth. */
const maxFacts = 50_000
const maxLetters = 20_000

/** What is known of the dead letters without reading one. */
interface StoredDeadLetters {
  readonly stored: number
  /** Sequence in DEAD of the oldest. */
  readonly firstId: number
  /** When the oldest was stored, ms since the epoch. */
  readonly oldestAt: number
  /** Number of those removed from between the others. */
  readonly removed: number
}

/** Reads the ids of the dead letters that facts of a kind are about. */
const idsIn = Effect.fnUntraced(function* (kind: "redelivered" | "discarded", since: number) {
  const { firstSince, names, streamInfo } = yield* Broker
  const { state } = yield* streamInfo("look at the history", names.history)
  const ids: Array<number> = []
  const from = Math.max(1, state.first_seq, yield* firstSince(names.history, since))
  const subjects = [names.subjects.fact("*", "*", "ok", kind)]
  const range = { stream: names.history, subjects, from, to: state.last_seq }
  yield* readThrough(range, ({ message }) => {
    const id = numberIn(readRecord(message.string())?.dead)
    if (id !== undefined) ids.push(id)
  })
  return ids
})

/** Reads the ids of the dead letters whose rounds were delivered late. */
const lateIds = Effect.gen(function* () {
  const late = yield* readLateDeliveries({})
  return yield* readDeadLetters({}).pipe(
    Stream.filter(({ delivery }) => late(delivery) !== undefined),
    Stream.map(({ id }) => id),
    Stream.runCollect
  )
})

/**
 * Counts the dead letters that were neither sent again nor delivered late. Reads no dead letter
 * unless something was delivered late, and of the history only what was sent again since the oldest
 * dead letter was stored. Undefined if that is too much to read, if the history has dropped facts since
 * then, or the broker does not say.
 *
 * @param history what the leader says of the history.
 */
export const countOpen = Effect.fnUntraced(function* (
  letters: StoredDeadLetters,
  history: StreamInfo
) {
  const { firstId, oldestAt, removed, stored } = letters
  if (stored === 0) return 0
  const { names } = yield* Broker
  if (oldestAt < undroppedSince(history)) return undefined
  const since = oldestAt - maxClockSkewMs
  const count = (kind: string, from: number) =>
    countSince(names.history, from, names.subjects.fact("*", "*", "ok", kind))
  const [again, late, discarded] = yield* Effect.all(
    [
      count("redelivered", since),
      count("delivered-late", 0),
      removed === 0 ? Effect.succeed(0) : count("discarded", since)
    ],
    { concurrency: 3 }
  )
  if (again === undefined || late === undefined || discarded === undefined) return undefined
  // Nothing was ever removed, and a dead letter is sent again once: no fact needs to be read.
  if (firstId === 1 && removed === 0 && late === 0) return Math.max(0, stored - again)
  if (again + discarded > maxFacts || (late > 0 && Math.max(late, stored) > maxLetters))
    return undefined
  const settled = new Set<number>()
  if (again > 0) for (const id of yield* idsIn("redelivered", since)) settled.add(id)
  if (late > 0) for (const id of yield* lateIds) settled.add(id)
  if (settled.size > 0 && discarded > 0)
    for (const id of yield* idsIn("discarded", since)) settled.delete(id)
  let gone = 0
  for (const id of settled) if (id < firstId) gone++
  return Math.max(0, stored - settled.size + gone)
})
