import { Context } from "effect"
import { endpointKey } from "../domain/endpoint.ts"
import type { Fact } from "../domain/fact.ts"
import { CappedCells, HistogramCells } from "./cells.ts"
import { FactCells } from "./fact-cells.ts"
import type { Family, Labels, NumberFamily } from "./family.ts"
import { counter, gauge } from "./family.ts"

/** Tenants with series of their own, where the metrics are by tenant. */
const maxTenants = 100
/** Hosts, and tenants, that are named: those with the most requests in flight, or that wait most. */
const maxNamed = 20
/** Endpoints with a count of their own of answers that say too many requests. */
const maxRateLimited = 100
const tooManyRequests = 429
/** Upper bounds of how long a partition stands still as it moves, ms. */
const moveMs = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000]

/** What a worker does at a moment. */
interface WorkerLoad {
  /** Requests in flight. */
  readonly requests: number
  /** Those of them that have taken a second, or whose endpoints are known to take as long. */
  readonly slowRequests: number
  /** Most requests that may be in flight. */
  readonly maxRequests: number
  /** Partitions that the worker delivers in. */
  readonly partitions: number
  /** Open connections to receivers, idle ones among them. */
  readonly connections: number
  /** Returns the requests in flight by host. */
  readonly byHost: () => ReadonlyMap<string, number>
  /** Returns what each tenant uses and waits for. */
  readonly byTenant: () => Iterable<TenantLoad>
}

/** What a tenant uses of a worker's capacity. */
export interface TenantLoad {
  readonly tenant: string
  /** Requests in flight. */
  readonly requests: number
  /** Endpoints that wait for capacity. */
  readonly waiting: number
}

/** What a worker has done since it started. */
export interface WorkerTotals {
  /** Events whose plan is stored. */
  readonly routed: number
  /** Attempts whose outcome is stored. */
  readonly attempts: number
  /** Those of them that failed. */
  readonly failures: number
  /** Their durations in sum, s. */
  readonly attemptSeconds: number
  /** Rounds of deliveries that ended. */
  readonly delivered: number
  readonly deadLettered: number
  /** Requests in flight now. */
  readonly inFlight: number
}

const idle: WorkerLoad = {
  ...{ requests: 0, slowRequests: 0, maxRequests: 0, partitions: 0, connections: 0 },
  byHost: () => new Map(),
  byTenant: () => []
}

/** Answers 429 of one endpoint. */
interface RateLimited {
  readonly labels: Labels
  value: number
}

const rateLimitedCell = (key: string): RateLimited => {
  const [tenant = key, endpoint = key] = key.split(".")
  return { labels: { tenant, endpoint }, value: 0 }
}

/** The samples of the names with the highest values; those with 0 are left out. */
const highest = (
  label: string,
  values: Iterable<readonly [string, number]>
): NumberFamily["samples"] =>
  [...values]
    .filter(([, value]) => value > 0)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, maxNamed)
    .map(([name, value]) => ({ labels: { [label]: name }, value }))

const busiestHosts = (hosts: ReadonlyMap<string, number>): NumberFamily => ({
  name: "petrel.host.inflight_requests",
  help: `Requests in flight by host, of the ${maxNamed} hosts with the most.`,
  type: "gauge",
  samples: highest("host", hosts)
})

const busiestTenants = (tenants: ReadonlyArray<TenantLoad>): ReadonlyArray<NumberFamily> => [
  {
    name: "petrel.tenant.inflight_requests",
    help: `Requests in flight by tenant, of the ${maxNamed} tenants with the most.`,
    type: "gauge",
    samples: highest(
      "tenant",
      tenants.map(({ requests, tenant }) => [tenant, requests] as const)
    )
  },
  {
    name: "petrel.tenant.waiting_endpoints",
    help: `Endpoints that wait for their tenant's part of the worker, of the ${maxNamed} tenants with the most.`,
    type: "gauge",
    samples: highest(
      "tenant",
      tenants.map(({ tenant, waiting }) => [tenant, waiting] as const)
    )
  }
]

/** Puts the samples of several tenants together, by metric. */
const joined = (all: Iterable<FactCells>): ReadonlyArray<Family> => {
  const sums: Array<Family & { readonly samples: Array<never> }> = []
  for (const cells of all)
    for (const [at, family] of cells.families().entries()) {
      sums[at] ??= { ...family, samples: [] }
      sums[at].samples.push(...(family.samples as ReadonlyArray<never>))
    }
  return sums
}

/**
 * The metrics of one worker. What happened is counted from facts, each when the history is known to
 * hold it, by the worker that stored it: so the sum over all workers is what the history tells.
 */
export class WorkerMetrics {
  readonly #all: FactCells | undefined
  readonly #tenants: CappedCells<FactCells> | undefined
  readonly #rateLimited = new CappedCells(maxRateLimited, rateLimitedCell)
  readonly #moves = {
    handed: new HistogramCells({ kind: "handed-over" }, moveMs, 0.001),
    taken: new HistogramCells({ kind: "taken-over" }, moveMs, 0.001)
  }
  #unanswered = 0
  #refusedCommands = 0
  #returnedEvents = 0
  #returnedLargeEvents = 0
  /** Returns what the worker does now. Set once it delivers. */
  load: () => WorkerLoad = () => idle
  /** Returns how many events with many deliveries wait for their turns. Set once it routes. */
  largeEvents: () => number = () => 0
  /** Returns how many events are held beside the router's window. Set once it routes. */
  heldEvents: () => number = () => 0

  /** @param isByTenant true for series by tenant. (Default: false) */
  constructor(isByTenant = false) {
    if (isByTenant) this.#tenants = new CappedCells(maxTenants, (tenant) => new FactCells(tenant))
    else this.#all = new FactCells()
  }

  /** Counts a fact that the history holds because of this worker. */
  stored(fact: Fact): void {
    const cells = this.#all ?? this.#tenants?.of(fact.tenant)
    cells?.count(fact)
    if (fact.status === tooManyRequests && fact.kind === "attempt-failed")
      this.#rateLimited.of(endpointKey(fact.tenant, fact.endpoint)).value++
  }

  /** Counts a request that was cut off: its receiver may have processed it, and gets it again. */
  attemptCancelled(): void {
    this.#unanswered++
  }

  /** Counts a partition that it delivers in from now on. @param ms since it took the lease. */
  moved(isHanded: boolean, ms: number): void {
    this.#moves[isHanded ? "handed" : "taken"].observe(ms)
  }

  /** Counts a test or retry that was refused, since too many are under way. */
  refusedCommand(): void {
    this.#refusedCommands++
  }

  /** Counts an event with many deliveries that is left to the broker for a while. */
  returnedLargeEvent(): void {
    this.#returnedLargeEvents++
  }

  /** Counts an event that is left to the broker for a while, since so many of its tenant wait. */
  returnedEvent(): void {
    this.#returnedEvents++
  }

  families(): ReadonlyArray<Family> {
    const { byHost, byTenant, connections, ...load } = this.load()
    const { maxRequests, partitions, requests, slowRequests } = load
    return [
      ...this.#facts(),
      counter(
        "petrel.unanswered.attempts",
        "Requests that were cut off by a stop or a lost lease; the receiver may get them again.",
        this.#unanswered
      ),
      counter(
        "petrel.refused.commands",
        "Test events and retries that were refused, since too many of the tenant are under way.",
        this.#refusedCommands
      ),
      this.#rateLimits(),
      gauge(
        "petrel.large_events.held",
        "Events for more than 64 endpoints that the worker has begun to route, or holds for their turn.",
        this.largeEvents()
      ),
      counter(
        "petrel.large_events.returned",
        "Events for more than 64 endpoints that were left to the broker for a while, since the tenant has too many.",
        this.#returnedLargeEvents
      ),
      gauge(
        "petrel.events.held",
        "Events whose deliveries wait to be stored, set apart so that events of other tenants are routed.",
        this.heldEvents()
      ),
      counter(
        "petrel.events.returned",
        "Events that were left to the broker for a while, since too many of the tenant wait to be stored.",
        this.#returnedEvents
      ),
      gauge("petrel.inflight.requests", "Requests in flight.", requests),
      gauge(
        "petrel.inflight.slow_requests",
        "Requests in flight that have taken a second, or whose endpoints usually do.",
        slowRequests
      ),
      gauge("petrel.inflight.limit", "Most requests that may be in flight.", maxRequests),
      busiestHosts(byHost()),
      ...busiestTenants([...byTenant()]),
      gauge(
        "petrel.receiver.connections",
        "Open connections to receivers, idle ones among them.",
        connections
      ),
      gauge("petrel.partitions.owned", "Partitions that the worker delivers in.", partitions),
      {
        name: "petrel.partition.move.duration",
        help: "From the lease of a partition until the worker delivers there, by how it came to it.",
        type: "histogram",
        unit: "s",
        samples: [...this.#moves.handed.samples(false), ...this.#moves.taken.samples(false)]
      }
    ]
  }

  /** What happened so far, in sum. */
  totals(): WorkerTotals {
    const families = new Map(this.#facts().map((family) => [family.name, family]))
    const count = (name: string, label?: string, value?: string): number => {
      const family = families.get(name)
      if (family === undefined || family.type === "histogram") return 0
      const counted = family.samples.filter(
        ({ labels }) => label === undefined || labels[label] === value
      )
      return counted.reduce((sum, one) => sum + one.value, 0)
    }
    const durations = families.get("petrel.attempt.duration")
    const samples = durations?.type === "histogram" ? durations.samples : []
    const attempts = count("petrel.attempts")
    return {
      routed: count("petrel.events.routed"),
      attempts,
      failures: attempts - count("petrel.attempts", "outcome", "delivered"),
      attemptSeconds: samples.reduce((sum, one) => sum + one.sum, 0),
      delivered: count("petrel.deliveries.ended", "end", "delivered"),
      deadLettered: count("petrel.deliveries.ended", "end", "dead-lettered"),
      inFlight: this.load().requests
    }
  }

  #facts(): ReadonlyArray<Family> {
    return this.#all?.families() ?? joined(this.#tenants?.all ?? [])
  }

  #rateLimits(): NumberFamily {
    return {
      name: "petrel.rate_limited.attempts",
      help: `Attempts answered 429, of the first ${maxRateLimited} endpoints that did; others together.`,
      type: "counter",
      samples: [...this.#rateLimited.all]
    }
  }
}

/** The metrics that what runs here writes to: a worker's own, or nobody's. */
export const Metrics = Context.Reference<WorkerMetrics>("petrel/metrics/Metrics", {
  defaultValue: () => new WorkerMetrics()
})
