import { Effect, FiberSet } from "effect"
import type { Linked } from "./intrusive-list.ts"
import { IntrusiveList } from "./intrusive-list.ts"

/** Work that goes on without a fiber for as long as all goes well. Only its first end counts. */
export interface InFlightWork<R> {
  /** Does a part of it, unless it has ended or was cut off. What that throws ends the plain way. */
  readonly step: (part: () => void) => void
  /** It has come to its end. */
  readonly done: () => void
  /** It goes on as a fiber. */
  readonly continueInFiber: (work: Effect.Effect<void, unknown, R>) => void
  /** Says what is to be stopped where the work is cut off. */
  readonly onCancel: (stop: () => void) => void
}

/** All work of one place, and what its parts need of each other. */
interface Account<R> {
  readonly plain: IntrusiveList<CallbackWork<R>>
  readonly run: InFlight<R>["run"]
  /** Called when there is no work without a fiber any more. */
  readonly emptied: () => void
}

type Ended = (finished: boolean) => void
type AfterDefect<R> = (defect: unknown) => Effect.Effect<void, unknown, R>

/** A class, and not closures as elsewhere: it is made twice for each delivery. */
class CallbackWork<R> implements InFlightWork<R>, Linked<CallbackWork<R>> {
  before: CallbackWork<R> | undefined
  after: CallbackWork<R> | undefined
  readonly #account: Account<R>
  readonly #ended: Ended
  readonly #afterDefect: AfterDefect<R>
  #stop: (() => void) | undefined
  #isOpen = true

  constructor(account: Account<R>, ended: Ended, afterDefect: AfterDefect<R>) {
    this.#account = account
    this.#ended = ended
    this.#afterDefect = afterDefect
  }

  step(part: () => void): void {
    if (!this.#isOpen) return
    try {
      part()
    } catch (defect) {
      this.continueInFiber(this.#afterDefect(defect))
    }
  }

  done(): void {
    if (this.#leave()) this.#ended(true)
  }

  continueInFiber(work: Effect.Effect<void, unknown, R>): void {
    if (!this.#isOpen) return
    this.#account.run(work, this.#ended)
    this.#leave()
  }

  onCancel(stop: () => void): void {
    this.#stop = stop
  }

  cancel(): void {
    if (!this.#leave()) return
    this.#stop?.()
    this.#ended(false)
  }

  #leave(): boolean {
    if (!this.#isOpen) return false
    this.#isOpen = false
    const { emptied, plain } = this.#account
    plain.remove(this)
    if (plain.size === 0) emptied()
    return true
  }
}

/** What is to be done with the messages in hand, as fibers and without. */
export interface InFlight<R> {
  /** Begins work as a fiber. `ended` is called once, with whether it was finished or cut off. */
  readonly run: (work: Effect.Effect<void, unknown, R>, ended: (finished: boolean) => void) => void
  /**
   * Begins work that needs no fiber yet.
   *
   * @param afterDefect how it goes on after a step that has thrown.
   */
  readonly begin: (
    ended: (finished: boolean) => void,
    afterDefect: (defect: unknown) => Effect.Effect<void, unknown, R>
  ) => InFlightWork<R>
  /** How much of it there is. */
  readonly size: Effect.Effect<number>
  /** Waits until there is none. */
  readonly none: Effect.Effect<void>
}

/**
 * Keeps account of work, so that a stop can wait for it, and cuts it off when the scope closes. A
 * fiber for each message costs a tenth of a delivery (docs/performance.md): most need none.
 */
export const makeInFlight = Effect.fnUntraced(function* <R>() {
  const fibers = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(fibers)<R>()
  const plain = new IntrusiveList<CallbackWork<R>>()
  let waiting: Array<() => void> = []

  const run: InFlight<R>["run"] = (work, ended) =>
    fork(work).addObserver((exit) => ended(exit._tag === "Success"))

  const emptied = () => {
    const those = waiting
    waiting = []
    for (const resume of those) resume()
  }
  const account: Account<R> = { plain, run, emptied }

  const begin: InFlight<R>["begin"] = (ended, afterDefect) => {
    const work = new CallbackWork(account, ended, afterDefect)
    plain.add(work)
    return work
  }

  const noPlain = Effect.callback<void>((resume) => {
    if (plain.size === 0) resume(Effect.void)
    else waiting.push(() => resume(Effect.void))
  })
  const none: Effect.Effect<void> = Effect.suspend(() =>
    Effect.andThen(
      noPlain,
      Effect.andThen(FiberSet.awaitEmpty(fibers), () => (plain.size === 0 ? Effect.void : none))
    )
  )
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      for (const work of [...plain]) work.cancel()
    })
  )
  const inFlightWork: InFlight<R> = {
    run,
    begin,
    size: Effect.map(FiberSet.size(fibers), (count) => count + plain.size),
    none
  }
  return inFlightWork
})
