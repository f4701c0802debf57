import { Clock, Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { FailpointName } from "../broker/failpoint.ts"
import { Failpoint } from "../broker/failpoint.ts"
import type { Gate } from "../broker/gate.ts"
import type { Layout } from "../broker/installed.ts"
import type { StreamMessage } from "../broker/stream-message.ts"
import type { Event, EventSubject } from "../domain/event.ts"
import { contentFor, eventId } from "../domain/event.ts"
import type { GetHeader } from "../domain/header-names.ts"
import { maxForwardedLength } from "../domain/header-names.ts"
import { givenId } from "../domain/intake.ts"
import { channelOf } from "../domain/origin.ts"
import { Directory } from "../endpoints/directory.ts"
import { Facts } from "../history/facts.ts"
import { DeliveryStore } from "./delivery-store.ts"
import { makeDirectoryGate } from "./directory-gate.ts"
import type { Origins } from "./origins.ts"
import { makeOrigins } from "./origins.ts"
import type { OwnedPartitions } from "./partition-owner.ts"
import type { PlanStore } from "./plan-store.ts"
import { makePlanStore } from "./plan-store.ts"
import { SubjectRoutes } from "./subject-routes.ts"

/** Upper bound of the headers that are remembered as reported. Further ones are not reported. */
const maxReported = 1_000

/** Reports headers that cannot be forwarded. */
export interface DroppedHeaders {
  /** Called for each event; each header of a tenant is reported once. */
  readonly note: (tenant: string, name: string) => void
}

/** Makes the report of headers that cannot be forwarded: a line of the log for each. */
export const makeDroppedHeaders = Effect.gen(function* () {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const reported = new Set<string>()
  const dropped: DroppedHeaders = {
    note: (tenant, name) => {
      const known = `${tenant}/${name}`
      if (reported.has(known) || reported.size >= maxReported) return
      reported.add(known)
      run(
        Effect.logWarning(
          `a header is not forwarded where its value is none that HTTP allows: it has more than ${maxForwardedLength} characters, or control characters, or characters beyond Latin-1`,
          { tenant, header: name }
        )
      )
    }
  }
  return dropped
})

export interface RoutingOptions {
  readonly worker: string
  readonly layout: Layout
  /** Maximum bytes of event bodies in direct delivery. */
  readonly directBytes: number
  readonly owned: OwnedPartitions
  /** Guard the storing of deliveries, and of the origins of events. */
  readonly gates: { readonly deliveries: Gate; readonly origins: Gate }
  readonly stopping: () => boolean
}

/** What both paths of routing need. */
export interface RoutingServices {
  readonly options: RoutingOptions
  readonly broker: Broker["Service"]
  readonly clock: Clock.Clock
  readonly facts: Facts["Service"]
  readonly reached: (step: FailpointName) => void
  readonly routes: SubjectRoutes
  readonly plans: PlanStore
  readonly origins: Origins
  readonly dropped: DroppedHeaders
  /** Passes while the endpoints are current. */
  readonly endpoints: ReturnType<typeof makeDirectoryGate>
  /** Guards the storing of deliveries. */
  readonly deliveries: Gate
  readonly store: DeliveryStore
  /**
   * Above this age the broker may have forgotten what it has stored: the recovery path then
   * searches for it, ms.
   */
  readonly safeRepublishMs: number
}

/** Acquires what both paths of routing need. */
export const makeRoutingServices = Effect.fnUntraced(function* (options: RoutingOptions) {
  const broker = yield* Broker
  const directory = yield* Directory
  const { isSourced, moveDedupe, partitions } = options.layout
  const safeRepublishMs = moveDedupe / 2
  const services: RoutingServices = {
    options,
    broker,
    clock: yield* Clock.Clock,
    facts: yield* Facts,
    reached: yield* Failpoint,
    routes: new SubjectRoutes(directory, broker.names),
    plans: yield* makePlanStore(options.worker, safeRepublishMs),
    origins: yield* makeOrigins(isSourced, safeRepublishMs, options.gates.origins),
    dropped: yield* makeDroppedHeaders,
    endpoints: makeDirectoryGate(directory, {
      limit: safeRepublishMs / 2,
      stopping: options.stopping
    }),
    deliveries: options.gates.deliveries,
    store: new DeliveryStore(broker, partitions, options.owned),
    safeRepublishMs
  }
  return services
})

/**
 * Returns the event in a message.
 *
 * @param forwards names of headers that its endpoints get; undefined for none.
 */
export const eventOf = (
  message: StreamMessage,
  header: GetHeader,
  { tenant, type }: Exclude<EventSubject, { readonly problem: string }>,
  forwards: ReadonlyArray<string> | undefined,
  dropped: DroppedHeaders
): Event => {
  const channel = channelOf(header)
  return {
    seq: message.seq,
    tenant,
    type,
    id: eventId(givenId(header), message.seq, message.storedAt),
    at: message.storedAt,
    content: contentFor(header, forwards, (name) => dropped.note(tenant, name)),
    ...(channel === undefined ? {} : { channel })
  }
}
