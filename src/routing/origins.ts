import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { BrokerError } from "../broker/broker-error.ts"
import type { Gate } from "../broker/gate.ts"
import { PublishError } from "../broker/publication.ts"
import type { Event, EventIdentity } from "../domain/event.ts"
import { eventName, readEventName } from "../domain/event.ts"
import type { GetHeader } from "../domain/header-names.ts"
import type { Origin, Repeated } from "../domain/origin.ts"
import { isBroughtAgain, originName, readOrigin } from "../domain/origin.ts"

/**
 * Prevents duplicates of events that a stream source delivers twice. Before it plans an event, the
 * router claims the event's origin: it publishes to ORIGINS under a message id, which ORIGINS
 * deduplicates for as long as publishers' message ids are remembered. Both copies are in EVENTS;
 * the copy claimed first is delivered, whichever worker routes them and however often routing
 * restarts. What a restarted source brings again is known by its origin alone, for ever.
 */
export interface Origins {
  /**
   * Claims without a fiber. Calls `settle` once: with true where the event is the first of its
   * origin, with false where it is a repeat or the answer is not known.
   */
  readonly tryClaim: (event: Event, header: GetHeader, settle: (isFirst: boolean) => void) => void
  /** Returns the event that this one repeats; undefined where it repeats none. */
  readonly repeated: (
    event: Event,
    header: GetHeader,
    body: Uint8Array
  ) => Effect.Effect<Repeated | undefined, PublishError | BrokerError>
}

const notSourced: Origins = {
  tryClaim: (_event, _header, settle) => settle(true),
  repeated: () => Effect.undefined
}

const nameOf = ({ at, seq }: Event): string => eventName({ eventSeq: seq, eventAt: at })

/**
 * @param isSourced whether EVENTS is filled from other streams; else there are no repeats.
 * @param safeRepublishMs maximum time for a claim, ms.
 * @param gate guards the storing of claims.
 */
export const makeOrigins = Effect.fnUntraced(function* (
  isSourced: boolean,
  safeRepublishMs: number,
  gate: Gate
) {
  if (!isSourced) return notSourced
  const { names, publish, readMessage, send } = yield* Broker
  const originOf = (header: GetHeader) => readOrigin(header("nats-stream-source"))
  const claimOf = ({ tenant }: Event, origin: Origin) =>
    [["Nats-Msg-Id", originName(tenant, origin)]] as const
  const read = (stream: string, seq: number) =>
    readMessage(`look at message ${seq} of ${stream}`, stream, { seq })

  /**
   * True where the event that made the claim still exists and is identical. Otherwise the repeat
   * must be delivered.
   */
  const isSame = Effect.fnUntraced(function* (
    first: EventIdentity,
    event: Event,
    header: GetHeader,
    body: Uint8Array
  ) {
    const message = yield* read(names.events, first.eventSeq)
    return (
      message !== null &&
      message.time.getTime() === first.eventAt &&
      message.subject === names.subjects.event(event.tenant, event.type) &&
      message.header.get("Nats-Msg-Id") === (header("nats-msg-id") ?? "") &&
      Buffer.compare(message.data, body) === 0
    )
  })

  const origins: Origins = {
    tryClaim: (event, header, settle) => {
      const origin = originOf(header)
      if (origin === undefined) return settle(true)
      if (!gate.isHealthy() || isBroughtAgain(origin)) return settle(false)
      send(names.subjects.origin, nameOf(event), claimOf(event, origin), (result) =>
        settle(!(result instanceof PublishError) && !result.duplicate)
      )
    },
    repeated: Effect.fnUntraced(function* (event, header, body) {
      const origin = originOf(header)
      if (origin === undefined) return undefined
      if (isBroughtAgain(origin)) return "restart"
      const claimed = publish(names.subjects.origin, nameOf(event), claimOf(event, origin))
      const stored = yield* gate.within(safeRepublishMs, claimed)
      if (!stored.duplicate) return undefined
      const there = yield* read(names.origins, stored.seq)
      const first = readEventName(there?.string() ?? "")
      if (first === undefined || eventName(first) === nameOf(event)) return undefined
      return (yield* isSame(first, event, header, body)) ? first : undefined
    })
  }
  return origins
})
