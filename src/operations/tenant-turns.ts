import { Deferred, Effect, Option } from "effect"
import { type Bound, RefusedRequests } from "../metrics/refused-requests.ts"
import { FairLine } from "../policy/fair-turns.ts"
import { Shares } from "../policy/shares.ts"
import { Busy, Caller } from "./caller.ts"
import { allTenants } from "./token.ts"

/** Seconds after which another request is worth trying. */
const retryAfter = 2

type Turn = Deferred.Deferred<void>

/** Who is next: one of each tenant in turn, of those that have not their share already. */
export class TenantTurns {
  readonly #waiting: FairLine<Turn>
  readonly #taken: Shares

  /** @param most turns at the same time. @param mostWaiting of one tenant. */
  constructor(most: number, mostWaiting: number) {
    this.#taken = new Shares(most)
    this.#waiting = new FairLine(mostWaiting)
  }

  /** Waits for a tenant's turn. Returns false, at once, where too much of it waits. */
  take(tenant: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (this.#taken.take(tenant)) return Effect.succeed(true)
      const turn: Turn = Deferred.makeUnsafe()
      if (!this.#waiting.add(tenant, turn)) return Effect.succeed(false)
      return Effect.as(Deferred.await(turn), true).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            // Its turn may have come in the same moment.
            if (Deferred.isDoneUnsafe(turn)) this.giveBack(tenant)
            else this.#waiting.remove(tenant, turn)
          })
        )
      )
    })
  }

  /** Ends a turn of a tenant, and begins those that are next. */
  giveBack(tenant: string): void {
    this.#taken.give(tenant)
    const begin = () => this.#waiting.next((key) => this.#taken.take(key))
    for (let next = begin(); next !== undefined; next = begin())
      Deferred.doneUnsafe(next, Effect.void)
  }
}

/**
 * Works for a caller of the API in the turn of the caller's tenant. Fails with Busy where too much of
 * the tenant waits, or where its turn does not come in time.
 *
 * @param bound by which a refusal is counted. @param why what a refused caller is told.
 * @param withinMs how long a turn is waited for, ms. (Default: as long as the caller waits)
 */
export const inTenantTurn = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  turns: TenantTurns,
  { bound, why, withinMs }: { bound: Bound; why: string; withinMs?: number }
): Effect.Effect<A, Busy | E, R> =>
  Effect.gen(function* () {
    const caller = yield* Effect.serviceOption(Caller)
    const tenant = Option.match(caller, { onNone: () => allTenants, onSome: (one) => one.tenant })
    const refused = yield* RefusedRequests
    const take =
      withinMs === undefined
        ? turns.take(tenant)
        : Effect.timeoutOrElse(turns.take(tenant), {
            duration: withinMs,
            orElse: () => Effect.succeed(false)
          })
    return yield* Effect.acquireUseRelease(
      Effect.interruptible(take),
      (isTaken): Effect.Effect<A, Busy | E, R> =>
        isTaken
          ? work
          : Effect.suspend(() => {
              refused.note(bound)
              return new Busy({ message: why, retryAfter })
            }),
      (isTaken) => Effect.sync(() => (isTaken ? turns.giveBack(tenant) : undefined))
    )
  })
