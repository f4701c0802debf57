import { Effect, Option, Stream } from "effect"
import { Broker } from "../../../broker/broker.ts"
import { readEndpointNow } from "../../../delivery/introspection/endpoint-activity.ts"
import type { ConnectionCheck } from "../../../domain/connection-check.ts"
import type { Endpoint } from "../../../domain/endpoint.ts"
import type { FactKind } from "../../../domain/fact.ts"
import { factResult, successKinds } from "../../../domain/fact.ts"
import { TypeIndex } from "../../../domain/type-filter.ts"
import { parseFact, readFacts } from "../../../history/read.ts"
import { healthOf } from "../current-health.ts"
import type { Findings, RecentAttempts, RequestRate, Subscription } from "./findings.ts"

/** Maximum failed attempts that are reported on. */
export const maxFailures = 20
/** Windows before the latest failure in which others are looked for, each where the one before it
 * held too few, ms. */
const windowsMs = [10 * 60_000, 2 * 3_600_000, 24 * 3_600_000, 7 * 24 * 3_600_000]
const secondMs = 1_000
const minuteMs = 60_000
/** Maximum types whose latest event is looked up. */
const maxTypesLookedUp = 64
const maxConcurrentLookups = 8

const emptyRange: RecentAttempts = { failures: [], since: 0, deliveredAt: undefined }

/** Reads the latest fact of a kind about an endpoint. */
const latestFact = Effect.fnUntraced(function* ({ id, tenant }: Endpoint, kind: FactKind) {
  const { names, readMessage } = yield* Broker
  const found = yield* readMessage(`read the latest ${kind}`, names.history, {
    last_by_subj: names.subjects.fact(tenant, id, factResult(kind), kind)
  })
  if (found === null) return undefined
  return Option.getOrUndefined(parseFact(found.string(), found.seq))?.fact
})

/**
 * Reads the latest failed attempts. The window before the latest one grows until it holds enough,
 * so that neither a storm of failures nor a few days between two of them takes long.
 */
const readAttempts = Effect.fnUntraced(function* (endpoint: Endpoint) {
  const { id, tenant } = endpoint
  const [last, ...successes] = yield* Effect.all(
    [
      latestFact(endpoint, "attempt-failed"),
      ...successKinds.map((kind) => latestFact(endpoint, kind))
    ],
    { concurrency: "unbounded" }
  )
  const times = successes.flatMap((fact) => (fact === undefined ? [] : [fact.at]))
  const deliveredAt = times.length === 0 ? undefined : Math.max(...times)
  if (last === undefined) return { ...emptyRange, deliveredAt }
  for (const [index, window] of windowsMs.entries()) {
    const since = last.at - window
    const facts = yield* readFacts({
      endpoint: { tenant, id },
      kinds: ["attempt-failed"],
      since
    }).pipe(
      Stream.map(({ fact }) => fact),
      Stream.takeRight(maxFailures),
      Stream.runCollect
    )
    const failures = [...facts]
    if (failures.length >= maxFailures / 2 || index === windowsMs.length - 1)
      return { failures, since, deliveredAt } satisfies RecentAttempts
  }
  return { ...emptyRange, deliveredAt }
})

/** Counts the requests of the minute before the latest 429. */
const readRate = Effect.fnUntraced(function* (
  { id, tenant }: Endpoint,
  { failures }: RecentAttempts
) {
  const limited = failures.findLast(({ status }) => status === 429)
  if (limited === undefined) return undefined
  const times = yield* readFacts({
    endpoint: { tenant, id },
    kinds: ["attempt-failed", ...successKinds],
    since: limited.at - minuteMs,
    until: limited.at
  }).pipe(
    Stream.map(({ fact }) => fact.at),
    Stream.runCollect
  )
  const found: RequestRate = {
    inMinute: times.length,
    inSecond: times.filter((at) => at > limited.at - secondMs).length,
    at: limited.at
  }
  return found
})

/** Counts a tenant's stored events by type. The broker counts them by subject. */
const readSubscription = Effect.fnUntraced(function* ({ tenant, types: filters }: Endpoint) {
  const { names, readMessage, streamInfo } = yield* Broker
  const all = names.subjects.eventsOf(tenant)
  const { state } = yield* streamInfo(`count the events of ${tenant}`, names.events, {
    subjects_filter: all
  })
  const index = new TypeIndex<true>()
  index.add(filters, true)
  const prefix = all.length - 1
  const types = Object.entries(state.subjects ?? {}).map(([subject, count]) => {
    const type = subject.slice(prefix)
    return { type, count, isMatched: index.match(type).size > 0 }
  })
  const lookedUp = types.filter(({ isMatched }) => isMatched).slice(0, maxTypesLookedUp)
  const times = yield* Effect.forEach(
    lookedUp,
    ({ type }) =>
      Effect.map(
        readMessage("read the latest event", names.events, {
          last_by_subj: names.subjects.event(tenant, type)
        }),
        (found) => (found === null ? 0 : found.time.getTime())
      ),
    { concurrency: maxConcurrentLookups }
  )
  const found: Subscription = {
    types,
    matchedAt: times.length === 0 ? undefined : Math.max(...times)
  }
  return found
})

/** Counts an endpoint's dead letters. */
const countDeadLetters = Effect.fnUntraced(function* ({ id, tenant }: Endpoint) {
  const { names, streamInfo } = yield* Broker
  const subject = names.subjects.dead(tenant, id)
  const { state } = yield* streamInfo("count dead letters", names.dead, {
    subjects_filter: subject
  })
  return state.subjects?.[subject] ?? 0
})

/** Reads all that a diagnosis is made from, except what only a worker can find out. */
export const readFindings = Effect.fnUntraced(function* (
  endpoint: Endpoint,
  connection: ConnectionCheck | undefined
) {
  const read = yield* Effect.all(
    {
      health: healthOf(endpoint),
      activity: readEndpointNow(endpoint.tenant, endpoint.id),
      attempts: readAttempts(endpoint),
      subscription: readSubscription(endpoint),
      deadLetters: countDeadLetters(endpoint)
    },
    { concurrency: "unbounded" }
  )
  const rate = yield* readRate(endpoint, read.attempts)
  return { endpoint, connection, rate, ...read } satisfies Findings
})
