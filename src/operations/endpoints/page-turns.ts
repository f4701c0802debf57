import { Context, Deferred, Effect, Option } from "effect"
import { RefusedRequests } from "../../metrics/refused-requests.ts"
import { FairLine } from "../../policy/fair-line.ts"
import { Busy } from "../busy.ts"
import { Caller } from "../caller.ts"
import { allTenants } from "../tokens/token.ts"

/** Pages that are read at the same time: each asks the broker some hundred times. */
const maxPages = 2
/** Pages of one tenant that wait for their turn. */
const maxWaiting = 64
/** Seconds after which another one is worth trying. */
const retryAfter = 2

type Turn = Deferred.Deferred<void>

/** Who is next: one of each tenant in turn. */
export class FairTurns {
  readonly #waiting: FairLine<Turn>
  readonly #most: number
  #reading = 0

  /** @param most turns at the same time. @param mostWaiting of one tenant. */
  constructor(most: number, mostWaiting: number) {
    this.#most = most
    this.#waiting = new FairLine(mostWaiting)
  }

  /** Waits for a tenant's turn. Returns false, at once, where too much of it waits. */
  take(tenant: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      if (this.#reading < this.#most) {
        this.#reading++
        return Effect.succeed(true)
      }
      const turn: Turn = Deferred.makeUnsafe()
      if (!this.#waiting.add(tenant, turn)) return Effect.succeed(false)
      return Effect.as(Deferred.await(turn), true).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            // Its turn may have come in the same moment.
            if (Deferred.isDoneUnsafe(turn)) this.giveBack()
            else this.#waiting.remove(tenant, turn)
          })
        )
      )
    })
  }

  /** Ends a turn, and begins the next one. */
  giveBack(): void {
    const next = this.#waiting.next()
    if (next === undefined) this.#reading--
    else Deferred.doneUnsafe(next, Effect.void)
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
      (isTaken) => Effect.sync(() => (isTaken ? turns.value.giveBack() : undefined))
    )
  })
