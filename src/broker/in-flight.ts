import { Effect, FiberSet } from "effect"
import type { Linked } from "./intrusive-list.ts"
import { IntrusiveList } from "./intrusive-list.ts"

/**
 * Work that runs on callbacks, without a fiber, as long as all goes well. Only its first end
 * counts.
 */
export interface InFlightWork<R> {
  /**
   * Runs a part of the work, unless the work has ended or was cancelled. If the part throws, the
   * work continues as a fiber with `afterDefect`.
   */
  readonly step: (part: () => void) => void
  /** Ends the work. */
  readonly done: () => void
  /** Continues the work in a fiber. */
  readonly continueInFiber: (work: Effect.Effect<void, unknown, R>) => void
  /** Sets what is called when the work is cancelled. */
  readonly onCancel: (stop: () => void) => void
}

/** What all work of one `InFlight` shares. */
interface Account<R> {
  readonly plain: IntrusiveList<CallbackWork<R>>
  readonly run: InFlight<R>["run"]
  /** Called when no callback work is left. */
  readonly emptied: () => void
}

type Ended = (finished: boolean) => void
type AfterDefect<R> = (defect: unknown) => Effect.Effect<void, unknown, R>

/** A class instead of closures as elsewhere: two instances are made for each delivery. */
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

/** Work in flight, with fibers and without. */
export interface InFlight<R> {
  /**
   * Starts work in a fiber. `ended` is called once: with true if the work finished, with false if
   * it failed or was cancelled.
   */
  readonly run: (work: Effect.Effect<void, unknown, R>, ended: (finished: boolean) => void) => void
  /**
   * Starts callback work, which has no fiber yet.
   *
   * @param afterDefect how the work continues after a step that has thrown.
   */
  readonly begin: (
    ended: (finished: boolean) => void,
    afterDefect: (defect: unknown) => Effect.Effect<void, unknown, R>
  ) => InFlightWork<R>
  /** Number of items of work in flight. */
  readonly size: Effect.Effect<number>
  /** Waits until no work is in flight. */
  readonly none: Effect.Effect<void>
}

/**
 * Tracks work in flight, so that a stop can wait for it, and cancels it when the scope closes. A
 * fiber for each message costs a tenth of a delivery (docs/performance.md); most messages need
 * none.
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
