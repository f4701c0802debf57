import type { Clock } from "effect"
import { Effect, FiberSet, Option, Schema, Semaphore } from "effect"
import type { AlertBook } from "../../alerts/alert-book.ts"
import { Broker } from "../../broker/connection.ts"
import type {
  EndpointActivity,
  IntrospectionChunk,
  IntrospectionQuery,
  PartitionActivity,
  TenantCounts
} from "../../cluster/introspection.ts"
import { IntrospectionQuery as QuestionSchema } from "../../cluster/introspection.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { quantile } from "../../policy/durations.ts"
import { tallySince } from "../../policy/tally.ts"
import type { LaneScheduler } from "../scheduling/lane.ts"
import type { TallyBook } from "./tally-book.ts"

/** Maximum endpoints in one message: some 50 KiB. */
const maxEndpointsPerChunk = 256
/** Upper bound of the size of one of them, with names of maximum length, bytes. */
const endpointBytes = 400
/** Messages after which the answer yields to deliveries: some ms. */
const maxConcurrentAnswers = 4
/**
 * Maximum long answers, in progress or waiting. Their callers would time out before further ones.
 */
const maxConcurrentLongAnswers = 8

/** What only the owner of a partition knows. */
export interface Activity {
  readonly tallies: TallyBook
  readonly alerts: AlertBook
  /** Returns the number of endpoints whose circuit is not closed. */
  readonly openCircuits: () => number
  /** Returns the number of queue messages that are in flight. */
  readonly prefetched: () => number
  /**
   * Returns the number of waiting messages that this version cannot read, as far as they were read.
   */
  readonly unreadable: () => number
  readonly lanes: Pick<LaneScheduler<unknown>, "countsOf" | "keys">
}

export interface AnswerOptions {
  readonly partition: number
  readonly worker: string
  /** True while this worker owns the partition: a former owner's answer would be out of date. */
  readonly holds: () => boolean
  readonly clock: Clock.Clock
  readonly activity: Activity
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(QuestionSchema))

/** Measurements are precise to a tenth of a ms. */
const tenths = (ms: number): number => Math.round(ms * 10) / 10

/** Answers queries about a partition, for as long as the scope lives. */
export const answerQueries = Effect.fnUntraced(function* (options: AnswerOptions) {
  const { activity, clock, partition, worker } = options
  const { connection, names, publisher } = yield* Broker
  const begun = clock.currentTimeMillisUnsafe()
  const run = yield* FiberSet.makeRuntime<never>()
  const one = yield* Semaphore.make(1)
  let long = 0

  const sumOf = (now: number): PartitionActivity => {
    let inFlight = 0
    let waiting = 0
    for (const key of activity.lanes.keys()) {
      const counts = activity.lanes.countsOf(key)
      inFlight += counts.inFlight
      waiting += counts.inLine
    }
    return {
      ...activity.tallies.read(now),
      inFlight,
      inLine: waiting,
      prefetched: activity.prefetched(),
      unreadable: activity.unreadable()
    }
  }

  const endpointOf = (key: string, now: number): EndpointActivity => {
    const [tenant = "", endpoint = ""] = key.split(".")
    const { attempts, delivered, durations } = activity.tallies.read(now, key)
    const p50 = quantile(durations, 0.5)
    const p95 = quantile(durations, 0.95)
    return {
      tenant,
      endpoint,
      ...activity.lanes.countsOf(key),
      attempts,
      delivered,
      ...(p50 === undefined || p95 === undefined ? {} : { p50Ms: tenths(p50), p95Ms: tenths(p95) })
    }
  }

  const tenantsFor = (
    { tenants = [] }: IntrospectionQuery,
    now: number
  ): ReadonlyArray<TenantCounts> => {
    const found: Array<TenantCounts> = []
    const isNamed = tenants.length > 0
    for (const tenant of isNamed ? tenants : activity.alerts.tenants()) {
      const counts = activity.alerts.tenant(tenant)?.read(now)
      if (counts === undefined) continue
      const { dead, delivered, pending } = counts
      if (isNamed || dead + pending > 0) found.push({ tenant, delivered, pending, dead })
    }
    return found
  }

  const keysFor = ({ endpoint, tenant }: IntrospectionQuery): ReadonlyArray<string> => {
    if (tenant !== undefined && endpoint !== undefined) return [endpointKey(tenant, endpoint)]
    const keys = new Set(activity.tallies.keys())
    for (const key of activity.lanes.keys()) keys.add(key)
    const prefix = tenant === undefined ? "" : endpointKey(tenant, "")
    return [...keys].filter((key) => key.startsWith(prefix))
  }

  const answer = Effect.fnUntraced(function* (question: IntrospectionQuery, to: string) {
    const now = clock.currentTimeMillisUnsafe()
    const isSum = question.about === "partition"
    const isAlerts = question.about === "alerts"
    const keys = isSum || isAlerts ? [] : keysFor(question)
    const tenants = isAlerts ? tenantsFor(question, now) : []
    const most = Math.max(keys.length, tenants.length)
    const fitting = Math.floor(publisher.outbound.largest / endpointBytes)
    const partSize = Math.max(1, Math.min(maxEndpointsPerChunk, fitting))
    for (let part = 0; part === 0 || part * partSize < most; part++) {
      if (!options.holds()) return
      const [from, end] = [part * partSize, (part + 1) * partSize]
      const endpoints = keys.slice(from, end)
      const said: IntrospectionChunk = {
        v: 1,
        worker,
        since: Math.max(begun, tallySince(now)),
        part,
        isLast: end >= most,
        endpoints: endpoints.map((key) => endpointOf(key, now)),
        ...(isSum ? { partition: sumOf(now) } : {}),
        ...(isAlerts
          ? {
              openCircuits: activity.openCircuits(),
              watchedSince: begun,
              tenants: tenants.slice(from, end)
            }
          : {})
      }
      if (!connection.isClosed()) connection.publish(to, JSON.stringify(said))
      if (part % maxConcurrentAnswers === maxConcurrentAnswers - 1) yield* Effect.sleep(0)
    }
  })

  const hear = (text: string, to: string | undefined) => {
    const question = Option.getOrUndefined(decode(text))
    if (question === undefined || to === undefined) return
    const isLong = question.about === "endpoints" && question.endpoint === undefined
    if (!isLong) {
      run(answer(question, to))
      return
    }
    if (long >= maxConcurrentLongAnswers) return
    long++
    run(one.withPermit(answer(question, to))).addObserver(() => {
      long--
    })
  }

  yield* Effect.acquireRelease(
    Effect.sync(() =>
      connection.subscribe(names.subjects.ask(partition), {
        callback: (error, message) => {
          if (error === null) hear(message.string(), message.reply)
        }
      })
    ),
    (subscription) => Effect.sync(() => subscription.unsubscribe())
  )
})
