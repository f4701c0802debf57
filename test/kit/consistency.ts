import { assert } from "@effect/vitest"
import { Clock, Effect, Schema, Stream } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { readStream } from "../../src/broker/scan.ts"
import { readValue } from "../../src/broker/values.ts"
import { watermarkKey } from "../../src/delivery/recovery/takeover.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { Fact as FactSchema } from "../../src/domain/fact.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { Facts } from "../../src/history/facts.ts"
import { deadLetters, eventually, waitingMessages } from "./engine.ts"

const decodeFact = Schema.decodeUnknownSync(Schema.fromJsonString(FactSchema))

/** The history's record of one round of a delivery. */
export interface RoundRecord {
  readonly endpoint: string
  readonly event: string
  readonly round: string
  /** Numbers of the recorded attempts, in the order of the history. */
  readonly attempts: ReadonlyArray<number>
  readonly ends: ReadonlyArray<Fact>
}

/** Waits until nothing is in flight: all events are routed, and no delivery waits anywhere. */
export const quiet = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const router = ask("look at the router", () =>
    jsm.consumers.info(names.events, names.routerConsumer)
  )
  yield* eventually(
    Effect.all([router, waitingMessages]),
    ([{ num_ack_pending, num_pending }, waiting]) => num_pending + num_ack_pending + waiting === 0
  )
})

/** Returns all facts of the history, in order. */
export const allFacts = Effect.gen(function* () {
  const { names } = yield* Broker
  const stream = readStream({ stream: names.history, subjects: [names.subjects.allFacts] })
  return yield* stream.pipe(
    Stream.map((message) => decodeFact(message.string())),
    Stream.runCollect
  )
})

type Named = Pick<Fact, "endpoint" | "eventSeq" | "round">

const keyOf = ({ endpoint, eventSeq, round }: Named) => `${eventSeq}.${endpoint}.${round}`

const outcomes: ReadonlySet<string> = new Set(["attempt-failed", "delivered", "dead-lettered"])

/**
 * Returns the rounds started by plans, redeliveries and replays. Checks that each is started once.
 */
const roundsIn = (facts: ReadonlyArray<Fact>) => {
  const rounds = new Map<string, Named & Pick<RoundRecord, "event">>()
  const begin = ({ event = "" }: Fact, round: Named) => {
    const key = keyOf(round)
    assert.isFalse(rounds.has(key), `${key} is begun once`)
    rounds.set(key, { ...round, event })
  }
  const parts = new Map<number, number>()
  for (const fact of facts) {
    const { eventSeq = 0, kind, plan } = fact
    if (outcomes.has(kind) && plan === undefined)
      assert.isTrue(rounds.has(keyOf(fact)), `${keyOf(fact)} was begun before fact ${kind}`)
    if (kind === "redelivered" || kind === "replayed") begin(fact, fact)
    if (plan === undefined) continue
    assert.strictEqual(plan.part, parts.get(eventSeq) ?? 0, "parts of a plan are stored once each")
    parts.set(eventSeq, plan.last ? Number.POSITIVE_INFINITY : plan.part + 1)
    for (const { id } of plan.endpoints) begin(fact, { endpoint: id, eventSeq, round: "0" })
  }
  for (const [seq, next] of parts)
    assert.strictEqual(next, Number.POSITIVE_INFINITY, `the plan of event ${seq} is complete`)
  return rounds
}

/**
 * Checks that the streams are consistent once nothing is in flight. Each event has one plan. Each
 * round has one end and attempts numbered from 1 without gaps or duplicates. Each dead letter is
 * the one that its fact names.
 *
 * @returns a record of each round, by event, endpoint and round.
 */
export const consistentRounds = Effect.gen(function* () {
  yield* quiet
  const facts = yield* allFacts
  const about = Map.groupBy(
    facts.filter(({ kind }) => outcomes.has(kind)),
    keyOf
  )
  const rounds = roundsIn(facts)
  const endless = [...rounds.keys()].filter(
    (key) => about.get(key)?.some(({ kind }) => kind !== "attempt-failed") !== true
  )
  if (endless.length > 0) {
    const { names, streamInfo } = yield* Broker
    const { state } = yield* streamInfo("look at the history", names.history)
    assert.fail(
      `${endless.length} of ${rounds.size} rounds have no end, the first ${endless[0]}, in ${facts.length} facts; now ${state.messages} facts are there, and ${yield* waitingMessages} deliveries wait`
    )
  }
  const records = [...rounds].map(([key, { endpoint, event, round = "" }]): RoundRecord => {
    const own = about.get(key) ?? []
    const attempts = own.flatMap(({ attempt = 0, kind }) =>
      kind === "dead-lettered" ? [] : [attempt]
    )
    const ends = own.filter(({ kind }) => kind !== "attempt-failed")
    assert.lengthOf(ends, 1, `${key} ends once: ${JSON.stringify(ends)}`)
    const counted = Array.from(attempts, (_, index) => index + 1)
    assert.deepStrictEqual(attempts, counted, `${key} has each attempt once`)
    assert.strictEqual(ends[0]?.attempt, attempts.length, `${key} ends with its last attempt`)
    return { endpoint, event, round, attempts, ends }
  })

  const stored = (yield* deadLetters).map(({ headers, seq, subject }) => ({
    dead: seq,
    key: keyOf({
      endpoint: subject.split(".").at(-1) ?? "",
      eventSeq: Number(headers?.get("petrel-event-seq")),
      round: headers?.get("petrel-round") ?? ""
    }),
    reason: headers?.get("petrel-reason")
  }))
  const recorded = facts
    .filter(({ dead, kind }) => kind === "dead-lettered" && dead !== undefined)
    .map((fact) => ({ dead: fact.dead, key: keyOf(fact), reason: fact.reason }))
  const inOrder = <A extends { readonly dead: number | undefined }>(list: ReadonlyArray<A>) =>
    list.toSorted((a, b) => (a.dead ?? 0) - (b.dead ?? 0))
  assert.deepStrictEqual(inOrder(stored), inOrder(recorded), "each dead letter has its fact")
  for (const { dead, kind, reason } of facts)
    if (kind === "dead-lettered" && dead === undefined) assert.strictEqual(reason, "gone")

  return records
})

/** Checks that no records of waiting deliveries remain. */
export const noRecords = Effect.gen(function* () {
  const { ask, bucket, names } = yield* natsClients
  const records = yield* bucket(names.buckets.retries)
  const left = yield* ask("list the retry records", async () => {
    const keys: Array<string> = []
    for await (const key of await records.keys()) keys.push(key)
    return keys
  })
  assert.deepStrictEqual(left, [], "no retry record is left")
})

/**
 * Waits until the history's deduplication has forgotten the current ids: it accepts a fact a second
 * time under an id that it accepts now.
 */
export const idsForgotten = Effect.gen(function* () {
  const { append } = yield* Facts
  const at = yield* Clock.currentTimeMillis
  const fact: Fact = { v: 1, kind: "endpoint-enabled", at, tenant: "acme", endpoint: "other" }
  yield* append(fact, "once")
  yield* eventually(append(fact, "once"), ({ duplicate }) => !duplicate)
})

/** Fails unless the audit is clean. Returns its counts. */
export const isClean = Effect.gen(function* () {
  const { judgement } = yield* audit({})
  assert.deepStrictEqual(judgement.problems.list, [])
  assert.strictEqual(judgement.verdict, "clean")
  return judgement.tally
})

/** Returns the watermark stored for a partition, a sequence of the history; 0 if none is stored. */
export const storedWatermark = Effect.fnUntraced(function* (partition: number) {
  const { names } = yield* Broker
  const entry = yield* readValue(names.buckets.workers, watermarkKey(partition))
  const seq: unknown = entry === undefined ? 0 : JSON.parse(entry.string()).seq
  return Number(seq)
})
