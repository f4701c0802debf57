import type { Clock } from "effect"
import { Duration, Effect, Schema } from "effect"
import type { LeftBodies } from "../../src/delivery/bodies/left-bodies.ts"
import type { AckHandle } from "../../src/delivery/execution/ack-handle.ts"
import {
  CompletedDeliveries,
  HistoryPosition
} from "../../src/delivery/recovery/completed-deliveries.ts"
import { DirectDeliveryRegistry } from "../../src/delivery/recovery/direct-delivery-registry.ts"
import type { PartitionMemory } from "../../src/delivery/recovery/partition-memory.ts"
import { RecordedAttempts } from "../../src/delivery/recovery/partition-memory.ts"
import { PoisonGuard } from "../../src/delivery/recovery/poison-guard.ts"
import type { Delivery } from "../../src/domain/delivery.ts"
import { untried } from "../../src/domain/delivery.ts"
import { Endpoint, isHeldBack } from "../../src/domain/endpoint.ts"
import type { Place } from "../../src/domain/fact.ts"
import type { AttemptOutcome } from "../../src/domain/outcome.ts"
import type { RetryRecord } from "../../src/domain/retry-record.ts"
import { Directory } from "../../src/endpoints/directory.ts"
import type { EndpointOutline } from "../../src/endpoints/directory-table.ts"
import type { LiveEndpoint } from "../../src/endpoints/live-endpoint.ts"
import { makeLive } from "../../src/endpoints/live-endpoint.ts"
import { clock } from "../../src/time/timers.ts"

/** The time of `fixedClock`, ms since the epoch. */
export const now = 1_700_000_000_000

export const fixedClock: Clock.Clock = { ...clock, currentTimeMillisUnsafe: () => now }

export const key = "acme.hook"

/** An endpoint that is retried after 5 s, 3 times in all. */
export const live = makeLive(
  key,
  Schema.decodeUnknownSync(Endpoint)({
    ...{ v: 1, tenant: "acme", id: "hook", generation: "g", url: "http://127.0.0.1:9/" },
    ...{ types: [">"], sign: "standard", maxInFlight: 10, alerts: "off", redirects: 0 },
    secrets: [{ value: `whsec_${Buffer.alloc(32, 7).toString("base64")}`, createdAt: now }],
    retry: {
      ...{ backoff: { kind: "fixed", delay: "5 seconds" }, jitter: "none", maxAttempts: 3 },
      ...{ window: "1 hour", retryAfterCap: "24 hours" }
    },
    circuit: { failures: 1_000, rate: "none" },
    ...{ headers: {}, createdAt: now, updatedAt: now }
  }),
  1
)

const outlineOf = ({ config, revision }: LiveEndpoint): EndpointOutline => ({
  ...{ generation: config.generation, revision },
  ...{ isDisabled: config.disabled !== undefined, isHeldBack: isHeldBack(config) }
})

/** A directory that knows `acme.hook` alone, live, unless it is told otherwise. */
export const directoryOf = (changes: Partial<Directory["Service"]> = {}) =>
  Directory.of({
    ...{ match: () => [], unreadable: () => [], isCurrent: () => true, current: Effect.void },
    ...{
      revision: () => 1,
      version: () => 1,
      tenantCount: () => 1,
      tenants: () => ["acme"],
      givenUp: () => []
    },
    onUnavailable: () => () => {},
    standing: () => Effect.succeed({ _tag: "Live", endpoint: live }),
    ...{ liveNow: () => live, find: () => live, forwardable: () => undefined },
    hosts: { of: () => ({ hashes: [], version: 0 }) },
    outline: (key) => {
      const found = changes.find === undefined ? live : changes.find(key)
      return found === undefined ? undefined : outlineOf(found)
    },
    ...changes
  })

/** A first round of `acme.hook` that was published just now. */
export const deliveryOf = (changes: Partial<Delivery> = {}): Delivery => ({
  ...{ tenant: "acme", endpoint: "hook", event: "evt", eventSeq: 7, eventAt: now, type: "paid" },
  ...{ round: "0", began: now, deadline: now + Duration.toMillis("1 hour"), generation: "g" },
  ...{ revision: 1, content: {}, progress: untried },
  ...changes
})

/** Leaves no body in its event: each message holds its own. */
export const keptBodies: Pick<LeftBodies, "leave" | "read"> = {
  leave: (delivery) => delivery,
  read: ({ body }) => Effect.succeed(body)
}

/** A message of the queue that writes down how it is answered. */
export class NotedHandle implements AckHandle {
  readonly body = new Uint8Array(2)
  readonly delivery: Delivery
  readonly place: Place
  readonly deliveryCount: number
  /** `ack`, or the delay of the NAK, ms. */
  readonly answers: Array<"ack" | number> = []

  constructor(delivery = deliveryOf(), place: Place = placeOf(3), deliveryCount = 1) {
    this.delivery = delivery
    this.place = place
    this.deliveryCount = deliveryCount
  }

  ack(erase: Effect.Effect<void>): Effect.Effect<void> {
    this.answers.push("ack")
    return erase
  }

  nak(delayMs: number): void {
    this.answers.push(delayMs)
  }
}

/** A place in the queue. */
export const placeOf = (seq: number): Place => ({ stream: "QUEUE", seq, at: now })

/** What an owner knows that has begun just now. */
export const makeMemory = (): PartitionMemory => {
  const completed = new CompletedDeliveries(new HistoryPosition(0))
  const stream = (name: string, completed: CompletedDeliveries) => ({
    ...{
      index: 0,
      stream: name,
      waiting: new Map(),
      unreadRecords: new Map<number, number>(),
      completed
    },
    ...{ recordedAttempts: new RecordedAttempts(), poisonGuard: new PoisonGuard() },
    directDeliveries
  })
  const directDeliveries = new DirectDeliveryRegistry()
  return { ...stream("QUEUE", completed), backlog: stream("BACKLOG", completed.forBacklog()) }
}

/** The outcome of an attempt that ended just now. */
export const outcomeOf = (
  verdict: AttemptOutcome["verdict"],
  changes: Partial<AttemptOutcome> = {}
): AttemptOutcome => ({
  result: { status: verdict === "delivered" ? 200 : 503, durationMs: 1 },
  ...{ verdict, gone: false, overloaded: false, at: now },
  ...changes
})

/** A decision about a delivery, as the retries bucket holds it. */
export const recordOf = (
  decision: RetryRecord["decision"],
  changes: Partial<RetryRecord> = {}
): RetryRecord => {
  return { v: 1, decidedAt: now, decision, progress: { attempts: 1 }, ...changes }
}

/** Waits until all that is ready to run has run. */
export const idle = Effect.promise(() => new Promise<void>((done) => setImmediate(done)))
