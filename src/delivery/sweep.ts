import type { StoredMsg } from "@nats-io/jetstream"
import type { Schema } from "effect"
import { Effect, Schedule, Stream } from "effect"
import type { BrokerError } from "../broker/connection.ts"
import { Broker } from "../broker/connection.ts"
import { scanQueue } from "../broker/scan.ts"
import { parseDelivery } from "../domain/delivery.ts"
import type { DeadReason } from "../domain/outcome.ts"
import { Directory } from "./directory.ts"
import type { Held } from "./held.ts"
import type { PartitionMemory } from "./partition-memory.ts"

const noSuchMessage = 10057

/** Ends one waiting delivery as a dead letter, unless somebody has it in hand. */
export type EndWaiting = (
  held: Held,
  reason: DeadReason
) => Effect.Effect<void, BrokerError | Schema.SchemaError, Broker>

/**
 * Ends what waits for an endpoint that takes no deliveries any more: as NAKs and in line in its
 * stream, and as schedules. What is being attempted ends by its own outcome.
 */
export const sweepEndpoint = Effect.fnUntraced(function* (
  memory: PartitionMemory,
  tenant: string,
  endpoint: string,
  end: EndWaiting
) {
  const { names } = yield* Broker
  const directory = yield* Directory
  const subject = names.subjects.delivery(memory.index, tenant, endpoint)

  const sweep = Effect.fnUntraced(function* (message: StoredMsg) {
    const held = yield* heldOf(memory, subject, message)
    if (held === undefined) return
    const standing = yield* directory.standing(held.delivery)
    if (standing._tag === "Live") return
    yield* end(held, standing._tag === "Removed" ? "endpoint-removed" : "endpoint-disabled")
  })

  const scheduled = scanQueue(memory.stream, names.subjects.laterOf(memory.index)).pipe(
    Stream.filter(({ header }) => header.get("Nats-Schedule-Target") === subject)
  )
  yield* scanQueue(memory.stream, subject).pipe(
    Stream.concat(scheduled),
    Stream.mapEffect(sweep, { concurrency: 16, unordered: true }),
    Stream.runDrain
  )
})

const heldOf = Effect.fnUntraced(function* (
  memory: PartitionMemory,
  subject: string,
  message: StoredMsg
) {
  const { ask, jsm } = yield* Broker
  const { seq } = message
  const run = Effect.runForkWith(yield* Effect.context<never>())
  // Not handed to us, so the stream forgets it instead of the consumer; it must, for it is settled.
  const remove = ask("remove a delivery that has ended", () =>
    jsm.streams.deleteMessage(memory.stream, seq, false)
  ).pipe(
    Effect.catchIf(
      ({ code }) => code === noSuchMessage,
      () => Effect.void
    ),
    Effect.retry(Schedule.spaced("1 second"))
  )
  const delivery = parseDelivery(subject, (name) => message.header.get(name) || undefined)
  if (delivery === undefined) return undefined
  return {
    place: { stream: memory.stream, seq },
    delivery,
    body: message.data,
    handedOut: 1,
    ack: () => run(remove),
    nak: () => undefined
  } satisfies Held
})

/** Endpoints that have something in a partition's stream: `[tenant, endpoint]`. */
export const waitingEndpoints = Effect.fnUntraced(function* (memory: PartitionMemory) {
  const { ask, jsm, names } = yield* Broker
  const { state } = yield* ask(`list what waits in ${memory.stream}`, () =>
    jsm.streams.info(memory.stream, { subjects_filter: names.subjects.deliveriesOf(memory.index) })
  )
  return Object.keys(state.subjects ?? {}).map((subject) => subject.split(".").slice(-2))
})
