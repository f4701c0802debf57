import type { StoredMsg } from "@nats-io/jetstream"
import { Effect, Queue, Stream } from "effect"
import { Broker } from "../../broker/broker.ts"
import { keepGoing } from "../../broker/keep-going.ts"
import { endOf, scanQueue } from "../../broker/scan.ts"
import { deliveryIn } from "../../domain/delivery.ts"
import { endedPrefix } from "../retry/applied-steps.ts"
import type { AwaitingSpace, DeadLetterGate } from "../retry/dead-letter-gate.ts"
import { fireNow } from "./sweep.ts"

/** Pause after each batch of a scan, ms: more at once would delay all others in their queue. */
const paceMs = 100

/**
 * Wakes the ended deliveries of a partition that wait for space in DEAD, when there is some: their
 * schedules fire now instead of at their time. Runs until it is interrupted.
 */
export const wakeEnded = Effect.fnUntraced(function* (
  index: number,
  awaiting: AwaitingSpace,
  gate: Pick<DeadLetterGate, "hasSpace" | "isOpen" | "onReading">
) {
  const { names } = yield* Broker
  const stream = names.deliveries(index)
  const subject = names.subjects.schedule(index, `${endedPrefix}>`)
  const readings = yield* Queue.sliding<void>(1)
  Queue.offerUnsafe(readings, undefined)
  const stop = gate.onReading(() => Queue.offerUnsafe(readings, undefined))
  yield* Effect.addFinalizer(() => Effect.sync(stop))

  /** Returns true where the schedule of a delivery fires now. */
  const wake = Effect.fnUntraced(function* (message: StoredMsg) {
    const delivery = deliveryIn(message)
    if (delivery === undefined) return false
    if (gate.isOpen(delivery.tenant) && (yield* fireNow(message, delivery))) return true
    awaiting.note(delivery.tenant)
    return false
  })
  const wakeBatch = Effect.fnUntraced(function* (messages: ReadonlyArray<StoredMsg>) {
    const woken = yield* Effect.forEach(messages, wake, { concurrency: 32 })
    if (woken.includes(true)) yield* Effect.sleep(paceMs)
    if (gate.hasSpace) return true
    awaiting.noteUnseen()
    return false
  })
  const wakeAll = Effect.gen(function* () {
    awaiting.forget()
    // What is refused again is stored beyond it, and noted.
    const end = yield* endOf(stream)
    yield* scanQueue(stream, subject, 1, end).pipe(
      Stream.chunks,
      Stream.mapEffect(wakeBatch),
      Stream.takeWhile((goesOn) => goesOn),
      Stream.runDrain
    )
  }).pipe(Effect.tapCause(() => Effect.sync(() => awaiting.noteUnseen())))

  return yield* keepGoing(
    "wake what waits for space among the dead letters",
    Effect.andThen(
      Queue.take(readings),
      Effect.suspend(() => (awaiting.isDue(gate) ? wakeAll : Effect.void))
    ),
    paceMs,
    Effect.logWarning
  )
}, Effect.scoped)
