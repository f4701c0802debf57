import { Effect } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { makeGate } from "../broker/gate.ts"
import { PublishError } from "../broker/publisher.ts"
import { isNoSuchMessage } from "../broker/scan.ts"
import type { Event, EventIdentity, GetHeader } from "../domain/event.ts"
import { eventName, readEventName } from "../domain/event.ts"
import { originName, readOrigin } from "../domain/origin.ts"

/**
 * Keeps an event from being delivered twice that a source brought twice: the router claims the origin
 * of each before it plans it, under an id that ORIGINS takes once for as long as publishers' ids are
 * known. Both copies are in EVENTS, and the first that was claimed is delivered, whoever routes them
 * and however often that is begun anew.
 */
export interface Origins {
  /**
   * Without a fiber. `settle` is called once: true where the event is the first of its origin; false
   * where that is not known, or it is not.
   */
  readonly tryClaim: (event: Event, header: GetHeader, settle: (isFirst: boolean) => void) => void
  /** The event that another one repeats; undefined where it repeats none. */
  readonly repeated: (
    event: Event,
    header: GetHeader,
    body: Uint8Array
  ) => Effect.Effect<EventIdentity | undefined, PublishError | BrokerError>
}

const notSourced: Origins = {
  tryClaim: (_event, _header, settle) => settle(true),
  repeated: () => Effect.undefined
}

const nameOf = ({ at, seq }: Event): string => eventName({ eventSeq: seq, eventAt: at })

/**
 * @param isSourced whether EVENTS takes its events from other streams; else there are no repeats.
 * @param patience for how long a claim may take, ms.
 */
export const makeOrigins = Effect.fnUntraced(function* (isSourced: boolean, patience: number) {
  if (!isSourced) return notSourced
  const { ask, jsm, names, publisher } = yield* Broker
  const gate = makeGate(
    "the broker takes no origins of events: events wait until it does",
    "the broker takes origins of events again"
  )
  const claimOf = (event: Event, header: GetHeader) => {
    const origin = readOrigin(header("nats-stream-source"))
    return origin === undefined
      ? undefined
      : ([["Nats-Msg-Id", originName(event.tenant, origin)]] as const)
  }
  const read = (stream: string, seq: number) =>
    ask(`look at message ${seq} of ${stream}`, () => jsm.streams.getMessage(stream, { seq })).pipe(
      Effect.catchIf(isNoSuchMessage, () => Effect.succeed(null))
    )

  /** True where the event that made the claim is there, and is the same: else it must not be left out. */
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
      const claim = claimOf(event, header)
      if (claim === undefined) return settle(true)
      if (!gate.isHealthy()) return settle(false)
      publisher.send(names.subjects.origin, nameOf(event), claim, (result) =>
        settle(!(result instanceof PublishError) && !result.duplicate)
      )
    },
    repeated: Effect.fnUntraced(function* (event, header, body) {
      const claim = claimOf(event, header)
      if (claim === undefined) return undefined
      const publish = publisher.publish(names.subjects.origin, nameOf(event), claim)
      const stored = yield* gate.within(patience, publish)
      if (!stored.duplicate) return undefined
      const claimed = yield* read(names.origins, stored.seq)
      const first = readEventName(claimed?.string() ?? "")
      if (first === undefined || eventName(first) === nameOf(event)) return undefined
      return (yield* isSame(first, event, header, body)) ? first : undefined
    })
  }
  return origins
})
