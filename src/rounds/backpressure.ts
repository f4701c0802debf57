import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import type { Delivery } from "../domain/delivery.ts"
import { endpointKey } from "../domain/endpoint.ts"
import { countBacklogs } from "../history/backlog-count.ts"
import { timers } from "../time/timers.ts"
import { makeTurn } from "./turns.ts"

/** Maximum number of waiting messages of an endpoint while more are sent to it. */
export interface BackpressureLimits {
  /** In its queue, which it shares with others. (Default: 1,000) */
  readonly queue: number
  /** In its queue and its backlog, which holds 1,000,000 with new events. (Default: 10,000) */
  readonly all: number
}

export const defaultBackpressure: BackpressureLimits = { queue: 1_000, all: 10_000 }

/** Waiting messages are counted after this many sends, or this long after the last count (ms). */
const lookAfter = { sent: 100, ms: 1_000 }
/** A delivery for a backlog with 1,000,000 messages is dead-lettered. */
const nearlyFull = 900_000
/** Pause between counts while throttled, ms. */
const pollMs = 250

const sumOf = (counts: Readonly<Record<string, number>> | undefined): number =>
  Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0)

interface BackpressureOptions<E> {
  readonly target: Pick<Delivery, "tenant" | "endpoint">
  readonly partition: number
  readonly limits: BackpressureLimits
  /** Called with the number of waiting messages while held back, and with 0 on resuming. */
  readonly held: (waiting: number) => void
  /** Another check, made with each count. */
  readonly look: Effect.Effect<void, E, Broker>
}

/**
 * Throttles bulk sends to one endpoint, so that its waiting messages stay below the limits.
 * Otherwise new events would find its backlog full, and others in its queue would wait. It sends in
 * turns with others (`Turns`), and has none while it is held back.
 */
export const makeBackpressure = Effect.fnUntraced(function* <E>(options: BackpressureOptions<E>) {
  const { held, limits, partition, target } = options
  const { endpoint, tenant } = target
  const { names, streamInfo } = yield* Broker
  const count = (stream: string, subjects_filter: string) =>
    Effect.map(
      streamInfo(`count what waits in ${stream}`, stream, { subjects_filter }),
      ({ state }) => sumOf(state.subjects)
    )
  const look = Effect.all(
    [
      count(names.deliveries(partition), names.subjects.delivery(partition, tenant, endpoint)),
      Effect.map(
        countBacklogs(partition, tenant, endpoint),
        (counts) => counts.get(endpointKey(tenant, endpoint)) ?? 0
      )
    ],
    { concurrency: 2 }
  )
  /** The first few are not held back: a small redelivery need not wait for a whole backlog. */
  let few = limits.queue
  let sent = 0
  let lookedAt = Number.NEGATIVE_INFINITY
  const turn = yield* makeTurn

  return {
    /** Waits until one more may be sent. Called before each send, never concurrently. */
    next: Effect.gen(function* () {
      yield* turn.next
      const now = timers.monotonicMs()
      if (++sent <= Math.min(lookAfter.sent, limits.queue / 2) && now - lookedAt < lookAfter.ms)
        return
      few -= sent
      let holding = false
      while (true) {
        const [queue, backlog] = yield* look
        const part = holding ? 0.5 : 1
        const waiting = queue + backlog
        // Checked last, so that a change during the wait is seen before the next send.
        yield* options.look
        if (queue < limits.queue * part && waiting < limits.all * part) break
        if (few > 0 && waiting < nearlyFull) break
        holding = true
        held(waiting)
        yield* turn.giveBack
        yield* Effect.sleep(pollMs)
      }
      if (holding) {
        held(0)
        yield* turn.next
      }
      sent = 0
      lookedAt = timers.monotonicMs()
    })
  }
})
