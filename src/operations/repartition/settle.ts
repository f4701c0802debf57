import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Schedule } from "effect"
import { Broker } from "../../broker/broker.ts"
import { logTransitions, makeGate } from "../../broker/gate.ts"
import type { Layout } from "../../broker/installed.ts"
import { TopologyError } from "../../broker/installed.ts"
import { withContents } from "../../delivery/backlog/backlog-reader.ts"
import { EventBodies } from "../../delivery/bodies/event-bodies.ts"
import { LeftBodies } from "../../delivery/bodies/left-bodies.ts"
import type { AckHandle } from "../../delivery/execution/ack-handle.ts"
import { Settlement } from "../../delivery/execution/settlement.ts"
import type { PartitionMemory, StreamMemory } from "../../delivery/recovery/partition-memory.ts"
import { heldIn, saveEnded } from "../../delivery/recovery/remove-ended.ts"
import {
  eraseRecord,
  isErased,
  readEnded,
  readRevised
} from "../../delivery/retry/retry-records.ts"
import { originStreams, referencesIn } from "../../domain/backlog-message.ts"
import { parseDelivery } from "../../domain/delivery.ts"
import type { Place } from "../../domain/fact.ts"
import { placeOfSlot, slotOf } from "../../domain/fact.ts"
import { Facts } from "../../history/facts.ts"
import { readEventContents } from "../../rounds/replay.ts"
import { readTarget } from "../../rounds/round.ts"
import { removeMessage } from "./relocation.ts"

/** Decisions that are checked concurrently. */
const maxConcurrentLookups = 16

/** What the settling of a stream's decisions needs. */
interface Settling {
  readonly memory: StreamMemory
  readonly settlement: Settlement
  readonly asOwner: Effect.Effect<void>
  /** Called for a decision that could not be carried out. */
  readonly undone: () => void
}

/** Removes a message from its stream, however long the broker does not answer. */
const removeMessageFor = Effect.map(
  Broker,
  (broker) => (stream: string, seq: number) =>
    removeMessage(stream, seq).pipe(
      Effect.retry(Schedule.spaced("1 second")),
      Effect.orDie,
      Effect.provideService(Broker, broker)
    )
)

/** Returns the delivery at a place, with its body; undefined where this version cannot read it. */
const heldAt = Effect.fnUntraced(function* (
  { data, header, subject }: StoredMsg,
  { entry }: Place,
  partition: number
) {
  const get = (name: string) => header.get(name) || undefined
  if (entry === undefined) {
    const delivery = parseDelivery(subject, get)
    return delivery === undefined ? undefined : { delivery, body: data }
  }
  const streams = originStreams((yield* Broker).names, partition)
  const reference = referencesIn(subject, get, streams)?.[entry - 1]
  if (reference === undefined) return undefined
  const { target } = yield* readTarget(reference.tenant, reference.endpoint)
  const contents = yield* readEventContents(reference, target.forwards)
  return withContents(reference, contents ?? "gone")
})

/** Stores that an entry has left a message that stays for others: its record is erased after that. */
const leaveMessage = Effect.fnUntraced(function* (
  { completed, index, unreadRecords }: StreamMemory,
  place: Place,
  { header, subject }: StoredMsg
) {
  const { at, seq, stream } = place
  const streams = originStreams((yield* Broker).names, index)
  const references = referencesIn(subject, (name) => header.get(name) || undefined, streams) ?? []
  const left = Effect.gen(function* () {
    // An owner may have stored others whose facts lie below the watermark: they are stored again.
    const before = yield* readEnded({ stream, seq, at })
    for (const entry of before.ended) completed.add(slotOf({ seq, entry }), at)
    yield* saveEnded(completed, { stream, seq, at }, heldIn(references), before)
  })
  completed.add(slotOf(place), at)
  // Whoever reads the message learns that there is a record to erase.
  unreadRecords.set(seq, at)
  yield* left.pipe(Effect.retry(Schedule.spaced("1 second")), Effect.orDie)
})

/** Carries out the decision about one message, if there is any that is not carried out. */
const settleMessage = Effect.fnUntraced(function* (settling: Settling, place: Place) {
  const { asOwner, memory, settlement, undone } = settling
  const { completed } = memory
  const { at, seq, stream } = place
  const { readMessage } = yield* Broker
  const facts = yield* Facts
  const remove = yield* removeMessageFor
  const stored = yield* readRevised(place).pipe(
    // The owner of its next partition deals with an unreadable record.
    Effect.catchTag("SchemaError", () => Effect.undefined)
  )
  const message = yield* readMessage("read a waiting delivery", stream, { seq })
  if (message === null || message.time.getTime() !== at)
    return yield* stored === undefined ? Effect.void : eraseRecord(place)
  const held = yield* heldAt(message, place, memory.index)
  if (held === undefined) return
  const isGone =
    completed.has(slotOf(place), at) || (stored === undefined && (yield* isErased(place)))
  // The other entries of its message wait.
  const release =
    place.entry === undefined
      ? remove(stream, seq)
      : Effect.provideService(leaveMessage(memory, place, message), Broker, yield* Broker)
  if (isGone) {
    yield* release
    return yield* eraseRecord(place)
  }
  if (stored === undefined) return
  const { record } = stored
  const handle: AckHandle = {
    place,
    ...held,
    deliveryCount: 1,
    ack: (erase) => Effect.andThen(release, erase),
    nak: undone
  }
  const { decision, outcome } = record
  const isOutcomeRecorded = memory.recordedAttempts.has(place, record.progress.attempts)
  if (decision._tag === "Schedule" || decision._tag === "Dead")
    return yield* settlement.resume(handle, { ...stored, storedAt: at, isOutcomeRecorded })
  if (
    isOutcomeRecorded ||
    outcome === undefined ||
    (yield* settlement.isAttemptRecorded(handle, record))
  )
    return
  yield* asOwner
  yield* facts.append(outcome.fact, outcome.id)
})

/**
 * Carries out the decisions that former owners stored and did not finish, in their place and as
 * they would have. Afterwards, a delivery with a record waits only for its next attempt.
 *
 * @param asOwner passes while nobody else can be owner.
 * @returns the number of decisions that were checked.
 */
export const settleDecisions = Effect.fnUntraced(function* (
  memories: ReadonlyArray<PartitionMemory>,
  layout: Layout,
  asOwner: Effect.Effect<void>
) {
  const { names } = yield* Broker
  const records = makeGate(
    "the broker takes no retry records: waiting until it does",
    "the broker takes retry records again"
  )
  const say = logTransitions(
    "the dead-letter stream takes nothing",
    "the dead-letter stream takes dead letters again"
  )
  // It leaves no further body: what waits keeps what it has.
  const leftBodies = new LeftBodies({
    bodies: yield* EventBodies.make(),
    eventAge: () => undefined
  })
  let undone = 0
  let checked = 0

  const settleStream = Effect.fnUntraced(function* (memory: StreamMemory) {
    const settlement = yield* Settlement.make({
      worker: "cli",
      layout,
      memory,
      records,
      deadLetters: { store: (_tenant, _bytes, publish) => say(publish) },
      awaiting: undefined,
      leftBodies,
      // It sends nothing, so there is no success to record late.
      fence: { asOwner, holds: () => true, stillOwner: Effect.as(asOwner, true) },
      nextId: () => crypto.randomUUID()
    })
    const settling = { memory, settlement, asOwner, undone: () => void undone++ }
    const { stream } = memory
    const places = Array.from(
      memory.unreadRecords,
      ([slot, at]): Place => ({ stream, at, ...placeOfSlot(slot) })
    )
    checked += places.length
    // One entry of a message after the other: each stores what has left the message so far.
    const byMessage = Map.groupBy(places, ({ seq }) => seq).values()
    yield* Effect.forEach(
      byMessage,
      (of) => Effect.forEach(of, (place) => settleMessage(settling, place), { discard: true }),
      { concurrency: maxConcurrentLookups, discard: true }
    )
  })

  for (const memory of memories) {
    yield* settleStream(memory)
    yield* settleStream(memory.backlog)
  }
  if (undone > 0)
    return yield* new TopologyError({
      message: `${undone === 1 ? "a delivery that has ended is" : `${undone} deliveries that have ended are`} not in ${names.dead} yet and cannot be stored there, perhaps because it is full: make space with \`petrel init --dead-bytes\`, then run this again`
    })
  return checked
})
