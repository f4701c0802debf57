import { Effect, Option, Schema, Stream } from "effect"
import { Broker } from "../../../broker/broker.ts"
import {
  type EndpointNow,
  readEndpointIn
} from "../../../delivery/introspection/endpoint-activity.ts"
import type { ConnectionCheck } from "../../../domain/connection-check.ts"
import type { Endpoint } from "../../../domain/endpoint.ts"
import { type Fact, type FactKind, factResult, successKinds } from "../../../domain/fact.ts"
import type { Health } from "../../../domain/health.ts"
import { TypeIndex } from "../../../domain/type-filter.ts"
import { parseFact, readFacts } from "../../../history/read.ts"
import { healthOf } from "../endpoint-queries.ts"

/** How one check of an endpoint came out, the worst last. */
export const CheckResult = Schema.Literals(["ok", "unknown", "warning", "problem"])
export type CheckResult = typeof CheckResult.Type

/** One thing that was looked at, and what to do about it. Both are sentences for people. */
export const Check = Schema.Struct({
  name: Schema.Literals([
    "state",
    "worker",
    "events",
    "name",
    "connection",
    "certificate",
    "failures",
    "rate",
    "circuit",
    "waiting",
    "dead letters"
  ]).annotateKey({ description: "What was looked at." }),
  result: CheckResult.annotateKey({ description: "Whether it is well." }),
  says: Schema.String.annotateKey({ description: "What was found." }),
  advice: Schema.optionalKey(Schema.String).annotateKey({
    description: "What to do. Absent if there is nothing to do."
  })
})
export type Check = typeof Check.Type

/** The latest attempts of an endpoint. Times in ms since the epoch. */
interface RecentAttempts {
  /** Failed ones, oldest first, at most `maxFailures` of the reading. */
  readonly failures: ReadonlyArray<Fact>
  /** The failures were looked for since then. */
  readonly since: number
  readonly deliveredAt: number | undefined
}

/** Requests to an endpoint before it answered 429. */
interface RequestRate {
  /** In the minute before. */
  readonly inMinute: number
  /** In the second before. */
  readonly inSecond: number
  /** When the 429 came, ms since the epoch. */
  readonly at: number
}

/** Events of one type that are stored now. */
export interface TypeCount {
  readonly type: string
  readonly count: number
  readonly isMatched: boolean
}

/** What a tenant publishes, and what of it an endpoint's filters match. */
interface Subscription {
  readonly types: ReadonlyArray<TypeCount>
  /** When the latest event that matches was stored, ms since the epoch. */
  readonly matchedAt: number | undefined
}

/** All that a diagnosis is made from. */
export interface Findings {
  readonly endpoint: Endpoint
  readonly health: Health
  readonly activity: EndpointNow
  readonly attempts: RecentAttempts
  /** Undefined without a 429 among the failures. */
  readonly rate: RequestRate | undefined
  readonly subscription: Subscription
  /** Dead letters that are kept, those that were sent again included. */
  readonly deadLetters: number
  /** From the worker that owns the endpoint. Undefined where none answers. */
  readonly connection: ConnectionCheck | undefined
}

/** Whether any delivery waits for the endpoint. */
export const somethingWaits = ({ activity: { waiting } }: Findings): boolean => {
  const { backlog, queue, schedules } = waiting
  return schedules === undefined || backlog + queue + schedules > 0
}

/** Maximum failed attempts that are reported on. */
const maxFailures = 20
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
export const readFindings = Effect.fnUntraced(function* (endpoint: Endpoint, partition: number) {
  const read = yield* Effect.all(
    {
      health: healthOf(endpoint),
      activity: readEndpointIn(partition, endpoint),
      attempts: readAttempts(endpoint),
      subscription: readSubscription(endpoint),
      deadLetters: countDeadLetters(endpoint)
    },
    { concurrency: "unbounded" }
  )
  const rate = yield* readRate(endpoint, read.attempts)
  return { endpoint, rate, ...read } satisfies Omit<Findings, "connection">
})
