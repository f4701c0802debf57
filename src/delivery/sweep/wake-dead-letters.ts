import { Effect, Queue } from "effect"
import { Broker } from "../../broker/broker.ts"
import { readBatch } from "../../broker/scan.ts"
import { endedPrefix } from "../retry/applied-steps.ts"
import type { DeadLetterGate } from "../retry/dead-letter-gate.ts"
import { deliveryIn, fireNow } from "./sweep.ts"

/** Maximum deliveries that are woken together: more would delay all others in their queue. */
const limits = { batch: 256, max_bytes: 4 * 1024 * 1024 }
/** Pause between two batches, ms. */
const paceMs = 100

/**
 * Wakes the ended deliveries of a partition that wait for space in DEAD, when there is some: their
 * schedules fire now instead of at their time. Runs until it is interrupted.
 */
export const wakeEnded = Effect.fnUntraced(function* (
  index: number,
  gate: Pick<DeadLetterGate, "isOpen" | "onSpace">
) {
  const { names } = yield* Broker
  const subject = names.subjects.schedule(index, `${endedPrefix}>`)
  const wakes = yield* Queue.sliding<void>(1)
  // A former owner may have left deliveries that now find space.
  Queue.offerUnsafe(wakes, undefined)
  const forget = gate.onSpace(() => Queue.offerUnsafe(wakes, undefined))
  yield* Effect.addFinalizer(() => Effect.sync(forget))

  const wakeAll = Effect.gen(function* () {
    for (let next = 1; ; ) {
      const messages = yield* readBatch(names.deliveries(index), subject, next, limits)
      const last = messages.at(-1)
      if (last === undefined) return
      next = last.seq + 1
      const woken = yield* Effect.forEach(
        messages,
        (message) => {
          const delivery = deliveryIn(message)
          return delivery !== undefined && gate.isOpen(delivery.tenant)
            ? Effect.as(fireNow(message, delivery), true)
            : Effect.succeed(false)
        },
        { concurrency: 32 }
      )
      if (woken.includes(true)) yield* Effect.sleep(paceMs)
    }
  })
  return yield* Queue.take(wakes).pipe(
    Effect.andThen(wakeAll),
    Effect.catch((error) =>
      Effect.logWarning("cannot wake what waits for space among the dead letters", {
        why: error.message
      })
    ),
    Effect.forever
  )
}, Effect.scoped)
