import { Effect, Option, Stream } from "effect"
import { Broker } from "../broker/connection.ts"
import { readStream } from "../broker/scan.ts"
import type { Fact } from "../domain/fact.ts"
import { claimKey } from "./claims.ts"
import type { DeadLetterQuery } from "./dead-letters.ts"
import { readLateDeliveries } from "./late-deliveries.ts"
import { parseFact } from "./read.ts"

/** What became of a dead letter that was sent again. Times in ms since the epoch. */
export interface Fate {
  readonly round: string
  readonly at: number
  readonly by: string | undefined
  /** Under way, or how the round ended. */
  outcome: "waiting" | "delivered" | "delivered-late" | "dead-lettered"
  endedAt?: number
  /** The dead letter that it became again. */
  dead?: number
}

/** A dead letter that was sent again, and what became of it. */
export interface SentAgain extends Pick<Fact, "tenant" | "endpoint"> {
  readonly id: number
  readonly eventSeq: number
  readonly fate: Fate
}

/** Endpoints up to which the history is read for each of them, and beyond which as a whole. */
const few = 8

/** What came of those of an endpoint's rounds that were begun by sending something again. */
const endsOf = Effect.fnUntraced(function* (
  targets: ReadonlyArray<readonly [tenant: string, endpoint: string]>,
  fates: ReadonlyMap<string, Fate>,
  fromSeq: number
) {
  const { names } = yield* Broker
  const { subjects } = names
  let open = fates.size
  const note = (fact: Fact) => {
    const { eventSeq, round } = fact
    if (eventSeq === undefined || round === undefined) return
    const fate = fates.get(`${fact.tenant}.${fact.endpoint}.${claimKey({ eventSeq, round })}`)
    if (fate === undefined || fate.outcome !== "waiting") return
    open--
    fate.outcome = fact.kind === "delivered" ? "delivered" : "dead-lettered"
    fate.endedAt = fact.at
    if (fact.dead !== undefined) fate.dead = fact.dead
  }
  yield* readStream({
    stream: names.history,
    subjects: targets.flatMap(([tenant, endpoint]) => [
      subjects.fact(tenant, endpoint, "ok", "delivered"),
      subjects.fact(tenant, endpoint, "failure", "dead-lettered")
    ]),
    fromSeq
  }).pipe(
    // Most end soon after they began: then nothing later need be read.
    Stream.takeUntil((message) => {
      const stored = Option.getOrUndefined(parseFact(message.string(), message.seq))
      if (stored !== undefined) note(stored.fact)
      return open === 0
    }),
    Stream.runDrain
  )
})

/** The dead letters that were sent again, each with what became of it, as the history tells it. */
const readSentAgain = Effect.fnUntraced(function* (
  query: Pick<DeadLetterQuery, "tenant" | "endpoint">,
  since: number
) {
  const { names } = yield* Broker
  const tenant = query.endpoint?.tenant ?? query.tenant ?? "*"
  const all: Array<SentAgain> = []
  const byRound = new Map<string, Fate>()
  const targets = new Map<string, readonly [tenant: string, endpoint: string]>()
  let first = Number.POSITIVE_INFINITY
  yield* readStream({
    stream: names.history,
    subjects: [names.subjects.fact(tenant, query.endpoint?.id ?? "*", "ok", "redelivered")],
    fromTime: since
  }).pipe(
    Stream.runForEach((message) =>
      Effect.sync(() => {
        const stored = Option.getOrUndefined(parseFact(message.string(), message.seq))
        if (stored === undefined) return
        const { at, by, dead, endpoint, eventSeq, round, tenant } = stored.fact
        if (dead === undefined || eventSeq === undefined || round === undefined) return
        const fate: Fate = { round, at, by, outcome: "waiting" }
        first = Math.min(first, message.seq)
        targets.set(`${tenant}.${endpoint}`, [tenant, endpoint])
        byRound.set(`${tenant}.${endpoint}.${claimKey({ eventSeq, round })}`, fate)
        all.push({ id: dead, tenant, endpoint, eventSeq, fate })
      })
    )
  )
  if (all.length === 0) return all
  const read = targets.size <= few ? [...targets.values()] : [["*", "*"] as const]
  yield* endsOf(read, byRound, first)
  const late = yield* readLateDeliveries(query)
  for (const { endpoint, eventSeq, fate, tenant } of all) {
    const delivered = late({ tenant, endpoint, eventSeq, round: fate.round })
    if (delivered === undefined || fate.outcome === "delivered") continue
    fate.outcome = "delivered-late"
    fate.endedAt = delivered.at
  }
  return all
})

/**
 * What became of the dead letters that were sent again, by their ids, as the history tells it.
 *
 * @param query whose dead letters; what is said of them otherwise is not looked at.
 * @param since when the first of them was stored, ms since the epoch.
 */
export const readFates = (query: Pick<DeadLetterQuery, "tenant" | "endpoint">, since = 0) =>
  Effect.map(
    readSentAgain(query, since),
    (all): ReadonlyMap<number, Fate> => new Map(all.map(({ fate, id }) => [id, fate]))
  )

/** The dead letters that were sent again and have come to no end yet, there or not. */
export const readUnended = (query: Pick<DeadLetterQuery, "tenant" | "endpoint">) =>
  Effect.map(readSentAgain(query, 0), (all) => all.filter(({ fate }) => fate.outcome === "waiting"))
