import { Effect, Option, Result, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readThrough } from "../../broker/bulk-read.ts"
import { firstSince } from "../../broker/scan.ts"
import { readValue } from "../../broker/values.ts"
import { firstRound } from "../../domain/delivery.ts"
import { Endpoint } from "../../domain/endpoint.ts"
import { Health } from "../../domain/health.ts"
import { highestMaxTimeoutMs } from "../../domain/settings/tenant-table.ts"
import { attemptTimeoutMs, defaultTimeoutMs } from "../../policy/attempt-timeout.ts"
import { policiesOf } from "../../policy/endpoint-policies.ts"
import type { RoundAt } from "../fact-record.ts"
import type { AuditReading } from "./audit-reading.ts"
import type { Remark } from "./bounded-notes.ts"
import type { AuditReach } from "./reach.ts"

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Endpoint))

const timeoutIn = (text: string): number => {
  const endpoint = Result.getOrUndefined(decode(text))
  if (endpoint === undefined) return defaultTimeoutMs
  return Result.match(policiesOf(endpoint), {
    onFailure: () => defaultTimeoutMs,
    onSuccess: (policies) =>
      Math.max(
        ...policies.map(({ policy }) => attemptTimeoutMs(endpoint, policy, highestMaxTimeoutMs))
      )
  })
}

type Whose = Pick<RoundAt, "tenant" | "endpoint">

const keyOf = ({ endpoint, tenant }: Whose): string => `${tenant}.${endpoint}`

/** Concurrent reads of endpoints. */
const maxConcurrentReads = 16

/**
 * How long an attempt at an endpoint may take, by the longest time-out in its present configuration.
 * For so long a delivery may be in an attempt, and appear in no stream.
 */
export const makeAttemptTimes = Effect.gen(function* () {
  const { names } = yield* Broker
  const known = new Map<string, number>()
  const read = Effect.fnUntraced(function* (key: string) {
    // An auditor may have no permission to read endpoints: they contain secrets.
    const entry = yield* Effect.orElseSucceed(
      readValue(names.buckets.endpoints, key),
      () => undefined
    )
    known.set(key, entry === undefined ? defaultTimeoutMs : timeoutIn(entry.string()))
  })
  return {
    /** Reads the configurations that are not known yet. */
    learn: (all: Iterable<Whose>) =>
      Effect.forEach(
        [...new Set([...all].map(keyOf))].filter((key) => !known.has(key)),
        read,
        { concurrency: maxConcurrentReads, discard: true }
      ),
    /** ms */
    of: (whose: Whose): number => known.get(keyOf(whose)) ?? defaultTimeoutMs
  }
})

type AttemptTimes = Effect.Success<typeof makeAttemptTimes>

interface RoutingDueOptions {
  /** ms since the epoch */
  readonly now: number
  /** How long an event may be in the router's hands, without its attempts, ms. */
  readonly graceMs: number
  readonly reach: AuditReach
  readonly times: AttemptTimes
}

/**
 * Tells which deliveries may still be with the router: it attempts a first delivery itself, directly
 * from the event, so no other stream shows it.
 */
export const makeRoutingDue = Effect.fnUntraced(function* (options: RoutingDueOptions) {
  const { graceMs, now, reach, times } = options
  const { names } = yield* Broker
  const broker = yield* Effect.context<Broker>()
  const lastStoredBefore = (at: number) =>
    Effect.map(firstSince(names.events, at), (first) => first - 1)
  const lastDue = yield* lastStoredBefore(now - graceMs)
  /** By attempt timeout (ms): the last event stored longer ago than that and the grace. */
  const lastDueBy = new Map<number, number>()
  return {
    /** Events up to this sequence should have been routed. */
    lastDue,
    /** Reads how long attempts of these rounds may take. */
    learn: Effect.fnUntraced(function* (rounds: ReadonlyArray<RoundAt>) {
      const direct = rounds.filter(
        ({ eventSeq, round }) => round === firstRound && eventSeq > reach.routerFloor
      )
      yield* Effect.provideContext(times.learn(direct), broker)
      for (const time of new Set(direct.map(times.of)))
        if (!lastDueBy.has(time)) lastDueBy.set(time, yield* lastStoredBefore(now - graceMs - time))
    }),
    /** True if the router need not have finished the round's event. */
    mayBeUnderWay: (round: RoundAt): boolean =>
      round.eventSeq > Math.max(reach.routerFloor, lastDueBy.get(times.of(round)) ?? lastDue)
  }
})

const decodeHealth = Schema.decodeUnknownOption(Schema.fromJsonString(Health))
const decodeEndpoint = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      generation: Schema.String,
      createdAt: Schema.Number,
      disabled: Schema.optionalKey(Schema.Unknown),
      suspended: Schema.optionalKey(Schema.Unknown)
    })
  )
)

/** Reads the values of a bucket, by key. */
const readBucket = Effect.fnUntraced(function* (bucket: string) {
  const { streamInfo } = yield* Broker
  const stream = `KV_${bucket}`
  const prefix = `$KV.${bucket}.`
  const { state } = yield* streamInfo(`look at ${stream}`, stream)
  const values = new Map<string, string>()
  yield* readThrough(
    { stream, subjects: [`${prefix}>`], from: state.first_seq, to: state.last_seq },
    ({ message }) => {
      const key = message.subject.slice(prefix.length)
      if (message.headers?.has("KV-Operation") === true) values.delete(key)
      else values.set(key, message.string())
    }
  )
  return values
})

const compare = Effect.fnUntraced(function* (reading: AuditReading) {
  const { names } = yield* Broker
  const { tenant } = reading.ledger.scope
  const found: Array<Remark> = []
  if (reading.endpoints.size === 0) return found
  const stored = yield* readBucket(names.buckets.health)
  const configured = yield* readBucket(names.buckets.endpoints)
  for (const [key, life] of reading.endpoints) {
    const { circuit } = life.health
    const [owner = "", endpoint = ""] = key.split(".")
    const config = Option.getOrUndefined(decodeEndpoint(configured.get(key)))
    // A removed, disabled, suspended or recreated endpoint starts anew, and not all of that is
    // recorded.
    if (config === undefined || config.disabled !== undefined) continue
    if (config.suspended !== undefined) continue
    if (circuit.since < config.createdAt || (tenant !== undefined && tenant !== owner)) continue
    const health = Option.getOrUndefined(decodeHealth(stored.get(key)))
    const state = health?.generation === config.generation ? health.circuit.state : "closed"
    if (state !== circuit.state)
      found.push({
        kind: "health-differs",
        ...{ tenant: owner, endpoint },
        says: `its circuit is stored as ${state}, and the facts say that it is ${circuit.state}`
      })
  }
  return found
})

/**
 * Finds endpoints whose stored circuit differs from the facts. Health and fact are written one after
 * the other, so a difference is checked again after a pause (ms). A worker that was killed in between
 * leaves a lasting difference; no delivery depends on it.
 */
export const compareCircuits = Effect.fnUntraced(function* (reading: AuditReading, pause: number) {
  const first = yield* compare(reading)
  if (first.length === 0) return first
  yield* Effect.sleep(pause)
  yield* reading.readHistory
  const second = yield* compare(reading)
  const identity = ({ endpoint, says, tenant }: Remark) => `${tenant}.${endpoint} ${says}`
  const before = new Set(first.map(identity))
  return second.filter((remark) => before.has(identity(remark)))
})
