import type { AccountLimits } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { natsClients } from "./clients.ts"
import { TopologyError } from "./installed.ts"
import { mebibytes } from "./reservation.ts"
import type { StreamSpec } from "./topology.ts"

/**
 * Consumers of one stream that an account has to allow: each worker, console and command has up to
 * three of its own on a bucket that it follows.
 */
const leastConsumers = 20

/** What the streams of an installation ask of an account besides storage. */
interface Demand {
  /** Streams that the account has. */
  readonly streams: number
  /** Streams that are to be made, with their largest size, bytes; 0 or less for none. */
  readonly added: ReadonlyArray<{ readonly name: string; readonly maxBytes: number }>
  /** The most messages that a consumer may leave unacknowledged. */
  readonly ackPending: number
}

/** Limits as the broker reports them; 0 or less for none. */
type OtherLimits = Pick<
  AccountLimits,
  | "max_ack_pending"
  | "max_bytes_required"
  | "max_consumers"
  | "max_streams"
  | "storage_max_stream_bytes"
>

/**
 * Returns which limit of an account is in the way of streams and consumers, as a sentence that says
 * what to raise; undefined if none is. `reservation.ts` looks at the storage of all together.
 */
export const limitProblem = (limits: OtherLimits, demand: Demand): string | undefined => {
  const { max_ack_pending, max_consumers, max_streams, storage_max_stream_bytes } = limits
  const { ackPending, added, streams } = demand
  const sizes = added.map(({ maxBytes }) => maxBytes)
  const largest = added.find(({ maxBytes }) => maxBytes === Math.max(...sizes))
  const unbounded = added.filter(({ maxBytes }) => maxBytes <= 0)
  if (max_streams > 0 && streams + added.length > max_streams)
    return `the broker's account may have ${max_streams} streams and has ${streams}, and ${added.length} more are to be made: raise its max_streams to ${streams + added.length} at least`
  if (max_consumers > 0 && max_consumers < leastConsumers)
    return `a stream of the broker's account may have ${max_consumers} consumers, and each worker, console and command needs some of its own: raise its max_consumers to ${leastConsumers} at least, or leave it out`
  if (max_ack_pending > 0 && max_ack_pending < ackPending)
    return `a consumer of the broker's account may leave ${max_ack_pending} messages unacknowledged, and Petrel's need ${ackPending}: raise its max_ack_pending, or leave it out`
  if (limits.max_bytes_required && unbounded[0] !== undefined)
    return `the broker's account takes no stream without a largest size, and ${unbounded.length} of Petrel's have none, such as ${unbounded[0].name}: leave out its max_bytes_required`
  if (
    storage_max_stream_bytes > 0 &&
    largest !== undefined &&
    largest.maxBytes > storage_max_stream_bytes
  )
    return `a stream of the broker's account may take ${mebibytes(storage_max_stream_bytes)}, and ${largest.name} is to take ${mebibytes(largest.maxBytes)}: choose less with \`petrel init --event-bytes\`, or raise its disk_max_stream_bytes`
  return undefined
}

/**
 * Fails where a limit of the account is in the way of streams and consumers, before the first is made.
 *
 * @param items what there is to be, in this account.
 */
export const checkAccountLimits = Effect.fnUntraced(function* (
  items: ReadonlyArray<StreamSpec>,
  replicas: number
) {
  const { ask, jsm } = yield* natsClients
  const { streamNames } = yield* Broker
  const info = yield* ask("look at the account", () => jsm.getAccountInfo())
  const there = new Set(yield* streamNames("list the streams"))
  const problem = limitProblem((info.tiers?.[`R${replicas}`] ?? info).limits, {
    streams: there.size,
    added: items
      .map(({ stream }) => ({ name: stream.name, maxBytes: stream.max_bytes ?? 0 }))
      .filter(({ name }) => !there.has(name)),
    ackPending: Math.max(0, ...items.map(({ consumer }) => consumer?.max_ack_pending ?? 0))
  })
  if (problem !== undefined) return yield* new TopologyError({ message: problem })
})
