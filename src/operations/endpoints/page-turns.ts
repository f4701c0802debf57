import { Context, Deferred, Effect, Option } from "effect"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import { FairLine } from "../../policy/fair-line.ts"
import { Shares } from "../../policy/shares.ts"
import { Busy } from "../busy.ts"
import { Caller } from "../caller.ts"
import { allTenants } from "../tokens/token.ts"

/**
 * Pages that are read at the same time, each of which asks the broker some hundred times: four of one
 * tenant that asks alone, and one is always left for the next.
 */
const maxPages = 8
/** Pages of one tenant that wait for their turn. */
const maxWaiting = 64
/** Seconds after which another one is worth trying. */
const retryAfter = 2

type Turn = Deferred.Deferred<void>

/** Who is next: one of each tenant in turn, of those that have not their share already. */
export class FairTurns {
  readonly #waiting: FairLine<Turn>
  readonly #reading: Shares

  /** @param most turns at the same time. @param mostWaiting of one tenant. */
  constructor(most: number, mostWaiting: number) {
    this.#reading = new Shares(most)
    this.#waiting = new FairLine(mostWaiting)
  }

  /** Waits for a tenant's turn. Returns false, at once, where too much of it waits. */
  take(tenant: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (this.#reading.take(tenant)) return Effect.succeed(true)
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
    this.#reading.give(tenant)
    const begin = () => this.#waiting.next((key) => this.#reading.take(key))
    for (let next = begin(); next !== undefined; next = begin())
      Deferred.doneUnsafe(next, Effect.void)
  }
}

/**
 * Whose page of endpoints is read next. Without turns, hundreds of pages of one tenant are before
 * whatever others ask the broker.
 */
export class PageTurns extends Context.Service<PageTurns, FairTurns>()(
  "petrel/operations/PageTurns"
) {
  static readonly make = () => PageTurns.of(new FairTurns(maxPages, maxWaiting))
}

/**
 * Reads a page for a caller of the API in its tenant's turn. Fails with Busy where too many of its
 * pages wait. The command line, which reads for itself, waits for nobody.
 */
export const inPageTurn = <A, E, R>(page: Effect.Effect<A, E, R>): Effect.Effect<A, Busy | E, R> =>
  Effect.gen(function* () {
    const turns = yield* Effect.serviceOption(PageTurns)
    if (Option.isNone(turns)) return yield* page
    const caller = yield* Effect.serviceOption(Caller)
    const tenant = Option.match(caller, { onNone: () => allTenants, onSome: (one) => one.tenant })
    const refused = yield* RefusedRequests
    return yield* Effect.acquireUseRelease(
      Effect.interruptible(turns.value.take(tenant)),
      (isTaken): Effect.Effect<A, Busy | E, R> =>
        isTaken
          ? page
          : Effect.suspend(() => {
              refused.note("pages")
              return new Busy({
                message: `${maxWaiting} pages of endpoints wait for their turn: ask for one after the other`,
                retryAfter
              })
            }),
      (isTaken) => Effect.sync(() => (isTaken ? turns.value.giveBack(tenant) : undefined))
    )
  })
