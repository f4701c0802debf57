import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { TopologyError } from "../../broker/installed.ts"
import { readEntry } from "../../broker/values.ts"
import { readEnqueuers } from "../../cluster/enqueuer-presence.ts"
import type { Owner, Ownership } from "../../cluster/ownership.ts"
import { takeOwnership } from "../../cluster/ownership.ts"
import { beatsPerTtl, leaseKey, readRoster } from "../../cluster/roster.ts"

/** Leases that are taken at the same time. */
const maxConcurrentLookups = 16
/** Pause between checks whether the leases are renewed, ms. */
const pollMs = 100

/** Fails while a worker is alive, or a redelivery or a replay is under way. */
export const refuseOthers = Effect.gen(function* () {
  const [sender] = yield* readEnqueuers
  if (sender !== undefined)
    return yield* new TopologyError({
      message: `${sender.what} is under way (by ${sender.by}, on ${sender.host}, process ${sender.pid}): wait until it has finished, or stop it; one that was killed counts as running for some 10 s more`
    })
  const { members } = yield* readRoster
  const alive = [...members.values()].map(({ said }) => said)
  const [first] = alive
  if (first === undefined) return
  const who =
    alive.length === 1
      ? `the worker ${first.id} is running (on ${first.host}, process ${first.pid}): stop it first`
      : `${alive.length} workers are running (${alive.map(({ id }) => id).join(", ")}): stop them first`
  return yield* new TopologyError({
    message: `${who}; one that was killed counts as running for some 10 s more`
  })
})

/** Ownership of all partitions. */
export interface Hold {
  /** Waits while it is not certain that all partitions are still owned. */
  readonly safe: Effect.Effect<void>
  /** Fails once a partition is not owned any more. */
  readonly lost: Effect.Effect<never, TopologyError>
}

/**
 * Owns all partitions until the scope closes, by the same leases as workers, so that a worker that
 * returns after a long pause finds that it owns none. Waits for the leases of a killed run to
 * expire; fails if another run is alive.
 *
 * @param onWait called once if it has to wait.
 */
export const holdAll = Effect.fnUntraced(function* (
  partitions: number,
  owner: Owner,
  onWait: Effect.Effect<void>
) {
  const { names } = yield* Broker
  const held: Array<Ownership> = []
  let said = false

  const take = Effect.fnUntraced(function* (partition: number) {
    let seen: number | undefined
    while (true) {
      const taken = yield* takeOwnership(partition, owner)
      if (taken !== undefined) {
        held.push(taken)
        return
      }
      const { revision, text } = yield* readEntry(names.buckets.workers, leaseKey(partition))
      if (text !== undefined && seen !== undefined && seen !== revision)
        return yield* new TopologyError({
          message:
            "another process owns the partitions and is alive: wait until the other `petrel repartition` has finished, and stop all workers"
        })
      if (text !== undefined) seen = revision
      if (!said) {
        said = true
        yield* onWait
      }
      yield* Effect.sleep(owner.ttl / beatsPerTtl / 2)
    }
  })

  yield* Effect.addFinalizer(() =>
    Effect.forEach(held, ({ giveBack }) => giveBack, {
      concurrency: maxConcurrentLookups,
      discard: true
    })
  )
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(owner.ttl / beatsPerTtl),
        Effect.suspend(() =>
          Effect.forEach([...held], ({ renew }) => renew, {
            concurrency: "unbounded",
            discard: true
          })
        )
      )
    )
  )
  // The first lease decides between two runs that start at the same time.
  yield* take(0)
  const others = Array.from({ length: partitions - 1 }, (_, index) => index + 1)
  yield* Effect.forEach(others, take, { concurrency: maxConcurrentLookups, discard: true })

  const isSafe = () => held.every(({ holds }) => holds())
  return {
    safe: Effect.suspend(() =>
      isSafe() ? Effect.void : Effect.repeat(Effect.sleep(pollMs), { until: isSafe })
    ),
    lost: Effect.andThen(
      Effect.raceAllFirst(held.map(({ lost }) => lost)),
      Effect.fail(
        new TopologyError({
          message:
            "the broker was away for too long, and another process owns the partitions now: stop all workers and run this again"
        })
      )
    )
  } satisfies Hold
})
