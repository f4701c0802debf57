import { Effect, Queue } from "effect"
import { Broker } from "../broker/broker.ts"
import { timers } from "../time/timers.ts"
import type { HeartbeatOptions, WorkerRefused } from "./heartbeat.ts"
import { startHeartbeat } from "./heartbeat.ts"
import type { Lease } from "./roster.ts"
import { watchRoster } from "./roster.ts"

/** Heartbeats of others may arrive late: they expire after this multiple of the TTL. */
const expiryFactor = 1.5

/** This worker's view of the cluster, and its place in it. */
export interface Membership {
  /** Ids of the workers that share the partitions, this one included unless it is leaving. */
  readonly sharers: () => ReadonlyArray<string>
  /** The other worker whose lease on the partition is known to be valid; undefined without one. */
  readonly holder: (partition: number) => Lease | undefined
  /**
   * True while the roster is reliable: it has been read completely, and it shows this worker's own
   * heartbeats.
   */
  readonly isCurrent: () => boolean
  /**
   * True once this worker may take partitions that belonged to another. After a gap in its
   * heartbeats it must wait for a whole TTL, in which the former owner may come back: otherwise,
   * after a long outage of the broker, every worker would take every partition.
   */
  readonly mayTake: () => boolean
  /** Waits until a worker has joined or left, or a lease has changed hands. */
  readonly changed: Effect.Effect<void>
  /** Announces that this worker no longer takes part, although it is still running. */
  readonly leave: Effect.Effect<void>
  /** Erases the heartbeat. */
  readonly end: Effect.Effect<void>
  /**
   * Fails when another process has taken the id, or when this worker was missed and may not return.
   */
  readonly replaced: Effect.Effect<never, WorkerRefused>
}

/**
 * Joins the cluster: sends heartbeats until the scope closes, and listens to those of others. Fails
 * if a live worker has the id.
 */
export const join = Effect.fnUntraced(function* (options: HeartbeatOptions) {
  const { instance, ttl, worker } = options.owner
  const { names } = yield* Broker
  const context = yield* Effect.context<Broker>()
  const heartbeat = yield* startHeartbeat(options)
  const { changes, isComplete, roster } = yield* watchRoster(names.buckets.workers, ttl, () =>
    heartbeat.isSound()
  )
  const isAlive = (at: number) => timers.monotonicMs() - at < ttl * expiryFactor
  const showsOwn = () => {
    const heard = roster().members.get(worker)
    return heard?.said.instance === instance && isAlive(heard.at)
  }
  let isLeaving = false
  const membership: Membership = {
    sharers: () => {
      const all = [...roster().members.values()]
        .filter(
          ({ at, said }) =>
            isAlive(at) &&
            said.leaving !== true &&
            // Nobody should release partitions for a worker that may not take them.
            said.returning !== true &&
            said.roles.includes("deliver")
        )
        .map(({ said }) => said.id)
      const others = all.filter((id) => id !== worker)
      return isLeaving ? others : [...others, worker]
    },
    holder: (partition) => {
      const heard = roster().leases.get(partition)
      const isOthers = heard !== undefined && isAlive(heard.at) && heard.said.instance !== instance
      return isOthers ? heard.said : undefined
    },
    isCurrent: () => isComplete() && showsOwn(),
    mayTake: () => heartbeat.mayTake(),
    changed: Queue.take(changes),
    leave: Effect.suspend(() => {
      isLeaving = true
      return Effect.provideContext(heartbeat.leave, context)
    }),
    end: Effect.provideContext(heartbeat.end, context),
    replaced: heartbeat.replaced
  }
  return membership
})
