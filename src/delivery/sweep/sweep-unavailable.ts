import type { Semaphore } from "effect"
import { Cause, Effect, Queue } from "effect"
import { partitionOf } from "../../domain/names.ts"
import { Directory } from "../../endpoints/directory.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import type { EndWaiting } from "./sweep.ts"
import { strandedEndpoints, sweepEndpoint, sweepSchedules } from "./sweep.ts"

/**
 * Pause before a sweep is repeated that left deliveries, ms: doubles from the first to the second.
 */
const pauses = [1_000, 60_000] as const

interface Task {
  /** Endpoint to sweep; undefined for all stranded endpoints of the partition. */
  readonly endpoint?: readonly [tenant: string, endpoint: string]
  readonly pause: number
}

/**
 * Ends what waits in a partition for disabled or removed endpoints: once at the start, and again
 * whenever an endpoint becomes unavailable. A sweep is repeated until nothing is left, for an
 * attempt that was in flight may fail and then wait like the others.
 *
 * @param partitions number of partitions.
 * @param turn lets one partition of a worker sweep at a time.
 */
export const sweepUnavailable = Effect.fnUntraced(function* (
  { endWaiting, memory }: { readonly endWaiting: EndWaiting; readonly memory: PartitionMemory },
  partitions: number,
  turn: Semaphore.Semaphore
) {
  const directory = yield* Directory
  const tasks = yield* Queue.unbounded<Task>()
  const stop = directory.onUnavailable((tenant, endpoint) => {
    if (partitionOf(tenant, endpoint, partitions) === memory.index)
      Queue.offerUnsafe(tasks, { endpoint: [tenant, endpoint], pause: pauses[0] })
  })
  yield* Effect.addFinalizer(() => Effect.sync(stop))
  Queue.offerUnsafe(tasks, { pause: pauses[0] })

  const sweep = ({ endpoint }: Task) =>
    Effect.gen(function* () {
      if (endpoint !== undefined) return yield* sweepEndpoint(memory, ...endpoint, endWaiting)
      let left = yield* sweepSchedules(memory, endWaiting)
      for (const stranded of yield* strandedEndpoints(memory))
        left += yield* sweepEndpoint(memory, ...stranded, endWaiting)
      return left
    }).pipe(
      Effect.map((left) => left === 0),
      Effect.catchCauseIf(
        (cause) => !Cause.hasInterrupts(cause),
        (cause) =>
          Effect.as(Effect.logWarning("a sweep of endpoints failed; trying again", cause), false)
      )
    )

  return yield* Effect.forever(
    Effect.gen(function* () {
      const task = yield* Queue.take(tasks)
      if (yield* turn.withPermit(sweep(task))) return
      const again = { ...task, pause: Math.min(task.pause * 2, pauses[1]) }
      yield* Effect.sync(() => Queue.offerUnsafe(tasks, again)).pipe(
        Effect.delay(task.pause),
        Effect.forkScoped
      )
    })
  )
}, Effect.scoped)
