import type { Clock, Fiber } from "effect"
import { Effect, FiberSet, Option, Schema, Semaphore } from "effect"
import type { AlertWindows } from "../../alerts/alert-windows.ts"
import { Broker } from "../../broker/broker.ts"
import type {
  EndpointActivity,
  IntrospectionChunk,
  IntrospectionQuery,
  PartitionActivity,
  TaskActivity,
  TenantCounts
} from "../../cluster/introspection.ts"
import { IntrospectionQuery as QuerySchema } from "../../cluster/introspection.ts"
import type { ConnectionCheck } from "../../domain/connection-check.ts"
import type { RoundIdentity } from "../../domain/delivery.ts"
import { endpointKey } from "../../domain/endpoint.ts"
import { present } from "../../domain/record.ts"
import { clockState } from "../../policy/clock-skew.ts"
import { quantile } from "../../policy/durations.ts"
import { Shares } from "../../policy/shares.ts"
import { tallySince } from "../../policy/tally.ts"
import { SteadySince } from "../../time/elapsed.ts"
import type { BacklogIndex } from "../backlog/backlog-index.ts"
import type { LaneScheduler } from "../scheduling/lane-scheduler.ts"
import type { AttemptTallies } from "./attempt-tallies.ts"

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
/**
 * Maximum connections that are tried at the same time, half of them of one tenant; further queries
 * get no answer.
 */
const maxConcurrentChecks = 4

const noCounts = { delivered: 0, pending: 0, dead: 0 }
const noCircuits: ReadonlyMap<string, number> = new Map()

/** What only the owner of a partition knows. */
interface Activity {
  readonly tallies: AttemptTallies
  readonly alerts: AlertWindows
  /** Returns the number of endpoints whose circuit is not closed, by tenant. */
  readonly openCircuits: () => ReadonlyMap<string, number>
  /** Returns the number of queue messages that are in flight. */
  readonly prefetched: () => number
  /**
   * Returns the number of waiting messages that this version cannot read, as far as they were read.
   */
  readonly unreadable: () => number
  readonly lanes: Pick<LaneScheduler<unknown>, "countsOf" | "keys">
  readonly backlogs: Pick<BacklogIndex, "countedIn" | "countedInAll">
  /** Returns what the round of a delivery to an endpoint is doing; undefined where it is not here. */
  readonly taskOf: (key: string, round: RoundIdentity) => TaskActivity | undefined
}

export interface AnswerOptions {
  readonly partition: number
  readonly worker: string
  /** True while this worker owns the partition: a former owner's answer would be out of date. */
  readonly holds: () => boolean
  readonly clock: Clock.Clock
  /** How far that clock is ahead of the broker's, or behind it (negative), ms. */
  readonly clockSkewMs: () => number
  readonly activity: Activity
  /** Tries the way to an endpoint's host; undefined for an endpoint that is not known. */
  readonly checkConnection: (key: string) => Effect.Effect<ConnectionCheck> | undefined
}

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(QuerySchema))

/** Measurements are precise to a tenth of a ms. */
const tenths = (ms: number): number => Math.round(ms * 10) / 10

/** Answers queries about a partition, for as long as the scope lives. */
export const answerQueries = Effect.fnUntraced(function* (options: AnswerOptions) {
  const { listen, names } = yield* Broker
  const answers = new IntrospectionAnswers(
    options,
    yield* Broker,
    yield* FiberSet.makeRuntime<never>()
  )
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      listen(names.subjects.ask(options.partition), (message) =>
        answers.receive(message.string(), message.reply)
      )
    ),
    (unlisten) => Effect.sync(unlisten)
  )
})

/** Makes the answers about one partition, and sends them in chunks. */
class IntrospectionAnswers {
  readonly #options: AnswerOptions
  readonly #broker: Broker["Service"]
  readonly #run: (answer: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #begun: SteadySince
  readonly #oneLong = Semaphore.makeUnsafe(1)
  #longCount = 0
  readonly #checks = new Shares(maxConcurrentChecks)

  constructor(
    options: AnswerOptions,
    broker: Broker["Service"],
    run: (answer: Effect.Effect<void>) => Fiber.Fiber<void>
  ) {
    this.#options = options
    this.#broker = broker
    this.#run = run
    this.#begun = new SteadySince(options.clock.currentTimeMillisUnsafe())
  }

  /**
   * Answers a query, unless it cannot be read or too many long answers are due.
   *
   * @param to subject of the answer.
   */
  receive(text: string, to: string | undefined): void {
    const query = Option.getOrUndefined(decode(text))
    if (query === undefined || to === undefined) return
    if (query.about === "connection") {
      this.#check(query, to)
      return
    }
    const answer = this.#answer(query, to)
    const isLong = query.about === "endpoints" && query.endpoint === undefined
    if (!isLong) {
      this.#run(answer)
      return
    }
    if (this.#longCount >= maxConcurrentLongAnswers) return
    this.#longCount++
    this.#run(this.#oneLong.withPermit(answer)).addObserver(() => {
      this.#longCount--
    })
  }

  /** Says at once that an answer comes, and tries the connection. */
  #check({ endpoint = "", tenant = "" }: IntrospectionQuery, to: string): void {
    const { checkConnection, clock, holds, worker } = this.#options
    const check = checkConnection(endpointKey(tenant, endpoint))
    if (!holds() || (check !== undefined && !this.#checks.take(tenant))) return
    const { say } = this.#broker
    const since = clock.currentTimeMillisUnsafe()
    const chunk = { v: 1, worker, since, endpoints: [] } as const
    say(to, JSON.stringify({ ...chunk, part: 0, isLast: check === undefined }))
    if (check === undefined) return
    const answer = Effect.map(check, (connection) =>
      say(to, JSON.stringify({ ...chunk, part: 1, isLast: true, connection }))
    )
    this.#run(answer).addObserver(() => {
      this.#checks.give(tenant)
    })
  }

  readonly #answer = Effect.fnUntraced(
    { self: this },
    function* (query: IntrospectionQuery, to: string) {
      const { clock, holds } = this.#options
      const { largestMessage, say } = this.#broker
      const now = clock.currentTimeMillisUnsafe()
      const keys = query.about === "endpoints" ? this.#keysFor(query) : []
      const open = query.about === "alerts" ? this.#options.activity.openCircuits() : noCircuits
      const openCircuits = [...open.values()].reduce((sum, count) => sum + count, 0)
      const tenants = query.about === "alerts" ? this.#tenantsFor(query, open, now) : []
      const most = Math.max(keys.length, tenants.length)
      const fitting = Math.floor(largestMessage() / endpointBytes)
      const size = Math.max(1, Math.min(maxEndpointsPerChunk, fitting))
      for (let part = 0; part === 0 || part * size < most; part++) {
        if (!holds()) return
        const [from, end] = [part * size, (part + 1) * size]
        const chunk: IntrospectionChunk = {
          ...this.#chunk(query, now, keys.slice(from, end), tenants.slice(from, end), openCircuits),
          ...{ part, isLast: end >= most }
        }
        say(to, JSON.stringify(chunk))
        if (part % maxConcurrentAnswers === maxConcurrentAnswers - 1) yield* Effect.sleep(0)
      }
    }
  )

  #chunk(
    query: IntrospectionQuery,
    now: number,
    keys: ReadonlyArray<string>,
    tenants: ReadonlyArray<TenantCounts>,
    openCircuits: number
  ): Omit<IntrospectionChunk, "isLast" | "part"> {
    const { clockSkewMs, worker } = this.#options
    const { about } = query
    const skew = clockSkewMs()
    const watchedSince = this.#begun.at(now)
    const since = Math.max(watchedSince, tallySince(now))
    const endpoints = keys.map((key) => this.#endpoint(key, now))
    const chunk = {
      ...({ v: 1, worker, since, endpoints } as const),
      ...(clockState(skew) === "right" ? {} : { clockSkewMs: skew })
    }
    if (about === "partition") return { ...chunk, partition: this.#sum(now) }
    if (about === "endpoints") return chunk
    if (about === "delivery") return { ...chunk, ...present({ task: this.#task(query) }) }
    return { ...chunk, openCircuits, watchedSince, tenants }
  }

  #sum(now: number): PartitionActivity {
    const { backlogs, lanes, prefetched, tallies, unreadable } = this.#options.activity
    let inFlight = 0
    let inLine = 0
    for (const key of lanes.keys()) {
      const counts = lanes.countsOf(key)
      inFlight += counts.inFlight
      inLine += counts.inLine
    }
    return {
      ...tallies.read(now),
      ...{ inFlight, inLine, prefetched: prefetched(), unreadable: unreadable() },
      ...present({ backlog: backlogs.countedInAll() })
    }
  }

  #endpoint(key: string, now: number): EndpointActivity {
    const { backlogs, lanes, tallies } = this.#options.activity
    const [tenant = "", endpoint = ""] = key.split(".")
    const { attempts, delivered, durations } = tallies.read(now, key)
    const p50 = quantile(durations, 0.5)
    const p95 = quantile(durations, 0.95)
    return {
      tenant,
      endpoint,
      ...lanes.countsOf(key),
      ...present({ backlog: backlogs.countedIn(key) }),
      attempts,
      delivered,
      ...(p50 === undefined || p95 === undefined ? {} : { p50Ms: tenths(p50), p95Ms: tenths(p95) })
    }
  }

  #task({ delivery, endpoint = "", tenant = "" }: IntrospectionQuery): TaskActivity | undefined {
    return delivery && this.#options.activity.taskOf(endpointKey(tenant, endpoint), delivery)
  }

  #tenantsFor(
    { tenants = [] }: IntrospectionQuery,
    open: ReadonlyMap<string, number>,
    now: number
  ): ReadonlyArray<TenantCounts> {
    const { alerts } = this.#options.activity
    const found: Array<TenantCounts> = []
    const isNamed = tenants.length > 0
    for (const tenant of isNamed ? tenants : alerts.tenants()) {
      const counts = alerts.tenant(tenant)?.read(now)
      const openCircuits = open.get(tenant) ?? 0
      if (counts === undefined && openCircuits === 0) continue
      const { dead, delivered, pending } = counts ?? noCounts
      if (isNamed || dead + pending > 0)
        found.push({ tenant, delivered, pending, dead, openCircuits })
    }
    return found
  }

  #keysFor({ endpoint, tenant }: IntrospectionQuery): ReadonlyArray<string> {
    const { lanes, tallies } = this.#options.activity
    if (tenant !== undefined && endpoint !== undefined) return [endpointKey(tenant, endpoint)]
    const keys = new Set(tallies.keys())
    for (const key of lanes.keys()) keys.add(key)
    const prefix = tenant === undefined ? "" : endpointKey(tenant, "")
    return [...keys].filter((key) => key.startsWith(prefix))
  }
}
