import { Effect } from "effect"
import { Broker } from "../../broker/connection.ts"
import type { Delivery } from "../../domain/delivery.ts"

/** What may wait for an endpoint while more is sent to it, in messages. */
export interface BackpressureLimits {
  /** In its queue, which it shares with others. (Default: 1,000) */
  readonly queue: number
  /** In its queue and its backlog, which takes 1,000,000 at most, of new events too. (Default: 10,000) */
  readonly all: number
}

export const defaultBackpressure: BackpressureLimits = { queue: 1_000, all: 10_000 }

/** It is looked after so many, or so long after the last look (ms). */
const lookAfter = { sent: 100, ms: 1_000 }
/** What comes when a backlog has 1,000,000 is a dead letter. */
const nearlyFull = 900_000
/** Pause between looks while it is held back, ms. */
const pollMs = 250

const sumOf = (counts: Readonly<Record<string, number>> | undefined): number =>
  Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0)

export interface BackpressureOptions<E> {
  readonly target: Pick<Delivery, "tenant" | "endpoint">
  readonly partition: number
  readonly limits: BackpressureLimits
  /** Told how many wait while it holds back, and 0 when it goes on. */
  readonly held: (waiting: number) => void
  /** What else is to be looked at as often. */
  readonly look: Effect.Effect<void, E, Broker>
}

/**
 * Holds back what is sent to one endpoint in bulk, so that no more waits for it than it may: new
 * events would find its backlog full, and those behind in its queue would wait.
 */
export const makeBackpressure = Effect.fnUntraced(function* <E>(options: BackpressureOptions<E>) {
  const { held, limits, partition, target } = options
  const { endpoint, tenant } = target
  const { ask, jsm, names } = yield* Broker
  const count = (stream: string, subjects_filter: string) =>
    Effect.map(
      ask(`count what waits in ${stream}`, () => jsm.streams.info(stream, { subjects_filter })),
      ({ state }) => sumOf(state.subjects)
    )
  const look = Effect.all(
    [
      count(names.deliveries(partition), names.subjects.delivery(partition, tenant, endpoint)),
      count(names.backlog(partition), names.subjects.backlog(partition, tenant, endpoint))
    ],
    { concurrency: 2 }
  )
  /** A few go out however much waits: whoever sends a few again is not to wait for a whole backlog. */
  let few = limits.queue
  let sent = 0
  let lookedAt = Number.NEGATIVE_INFINITY

  return {
    /** Waits until one more may be sent. To be asked before each, one at a time. */
    next: Effect.gen(function* () {
      const now = performance.now()
      if (++sent <= Math.min(lookAfter.sent, limits.queue / 2) && now - lookedAt < lookAfter.ms)
        return
      few -= sent
      let holding = false
      while (true) {
        const [queue, backlog] = yield* look
        const part = holding ? 0.5 : 1
        const waiting = queue + backlog
        // Last of all, each time: what changed while it was held back is known before it goes on.
        yield* options.look
        if (queue < limits.queue * part && waiting < limits.all * part) break
        if (few > 0 && waiting < nearlyFull) break
        holding = true
        held(waiting)
        yield* Effect.sleep(pollMs)
      }
      if (holding) held(0)
      sent = 0
      lookedAt = performance.now()
    })
  }
})
