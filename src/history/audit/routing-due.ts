import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { firstSince } from "../../broker/scan.ts"
import { firstRound } from "../../domain/delivery.ts"
import type { RoundAt } from "../fact-record.ts"
import type { AttemptTimes } from "./attempt-times.ts"
import type { AuditReach } from "./reach.ts"

export interface RoutingDueOptions {
  /** ms since the epoch */
  readonly now: number
  /** How long an event may be in the router's hands, without its attempts, ms. */
  readonly graceMs: number
  readonly reach: AuditReach
  readonly times: AttemptTimes
}

/**
 * Tells which deliveries may still be with the router: it attempts a first delivery itself, directly
 * from the event, so no other stream shows it.
 */
export const makeRoutingDue = Effect.fnUntraced(function* (options: RoutingDueOptions) {
  const { graceMs, now, reach, times } = options
  const { names } = yield* Broker
  const broker = yield* Effect.context<Broker>()
  const lastStoredBefore = (at: number) =>
    Effect.map(firstSince(names.events, at), (first) => first - 1)
  const lastDue = yield* lastStoredBefore(now - graceMs)
  /** By attempt timeout (ms): the last event stored longer ago than that and the grace. */
  const lastDueBy = new Map<number, number>()
  return {
    /** Events up to this sequence should have been routed. */
    lastDue,
    /** Reads how long attempts of these rounds may take. */
    learn: Effect.fnUntraced(function* (rounds: ReadonlyArray<RoundAt>) {
      const direct = rounds.filter(
        ({ eventSeq, round }) => round === firstRound && eventSeq > reach.routerFloor
      )
      yield* Effect.provideContext(times.learn(direct), broker)
      for (const time of new Set(direct.map(times.of)))
        if (!lastDueBy.has(time)) lastDueBy.set(time, yield* lastStoredBefore(now - graceMs - time))
    }),
    /** True if the router need not have finished the round's event. */
    mayBeUnderWay: (round: RoundAt): boolean =>
      round.eventSeq > Math.max(reach.routerFloor, lastDueBy.get(times.of(round)) ?? lastDue)
  }
})
