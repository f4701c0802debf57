import { Effect, FiberSet } from "effect"
import type { Linked } from "./intrusive-list.ts"
import { IntrusiveList } from "./intrusive-list.ts"

/** Work that may go on in a fiber. Only its first end counts. */
export interface InFlightWork<R> {
  /**
   * Runs a part of the work, unless the work has ended or was cancelled. If the part throws, the
   * work continues as a fiber with `afterDefect`.
   */
  step(part: () => void): void
  /** Ends the work. */
  done(): void
  /** Continues the work in a fiber, and ends it with the fiber. */
  continueInFiber(work: Effect.Effect<void, unknown, R>): void
}

type OnEnd = (finished: boolean) => void
/** Undefined where the fiber failed or was cancelled. */
type Result<A> = { readonly value: A } | undefined
type AfterDefect<R> = (defect: unknown) => Effect.Effect<void, unknown, R>

/** Tracks the work of one `InFlight`. */
interface Tracker<R> {
  readonly callbacks: IntrusiveList<CallbackWork<R>>
  readonly fork: <A>(work: Effect.Effect<A, unknown, R>, ended: (result: Result<A>) => void) => void
  /** Called when no callback work is left. */
  readonly emptied: () => void
  /** True once the scope has closed: nothing may begin. */
  isClosed: boolean
}

/**
 * Work that runs on callbacks, without a fiber, as long as all goes well. A fiber for each message
 * costs a tenth of a delivery (bench/DIARY.md); most messages need none.
 */
export abstract class CallbackWork<R> implements InFlightWork<R>, Linked<CallbackWork<R>> {
  before: CallbackWork<R> | undefined
  after: CallbackWork<R> | undefined
  #tracker: Tracker<R> | undefined

  /** Called once: with true if the work finished, with false if it failed or was cancelled. */
  protected abstract ended(finished: boolean): void

  /** How the work continues after a step that has thrown. */
  protected abstract afterDefect(defect: unknown): Effect.Effect<void, unknown, R>

  /** Called when the work is cancelled, before `ended`. */
  protected cancelled(): void {}

  /** Called by {@link InFlight} when the work is in flight from now on. */
  begin(tracker: Tracker<R>): void {
    this.#tracker = tracker
    tracker.callbacks.add(this)
  }

  step(part: () => void): void {
    if (this.#tracker === undefined) return
    try {
      part()
    } catch (defect) {
      this.continueInFiber(this.afterDefect(defect))
    }
  }

  done(): void {
    if (this.#leave() !== undefined) this.ended(true)
  }

  continueInFiber(work: Effect.Effect<void, unknown, R>): void {
    this.#fork(work, (result) => this.ended(result !== undefined))
  }

  /** Runs an effect in a fiber, then a step with its result. */
  protected inFiber<A>(work: Effect.Effect<A, unknown, R>, then: (value: A) => void): void {
    const tracker = this.#tracker
    this.#fork(work, (result) => {
      if (result === undefined || tracker === undefined || tracker.isClosed) this.ended(false)
      else {
        this.begin(tracker)
        this.step(() => then(result.value))
      }
    })
  }

  cancel(): void {
    if (this.#leave() === undefined) return
    this.cancelled()
    this.ended(false)
  }

  #fork<A>(work: Effect.Effect<A, unknown, R>, ended: (result: Result<A>) => void): void {
    const tracker = this.#tracker
    if (tracker === undefined) return
    this.#tracker = undefined
    tracker.callbacks.remove(this)
    tracker.fork(work, ended)
    // After the fork, so that whoever waits until no work is in flight waits for the fiber too.
    if (tracker.callbacks.size === 0) tracker.emptied()
  }

  #leave(): Tracker<R> | undefined {
    const tracker = this.#tracker
    if (tracker === undefined) return undefined
    this.#tracker = undefined
    tracker.callbacks.remove(this)
    if (tracker.callbacks.size === 0) tracker.emptied()
    return tracker
  }
}

/** Callback work for a caller that has no class of its own for it. */
class ClosureWork<R> extends CallbackWork<R> {
  protected readonly ended: OnEnd
  protected readonly afterDefect: AfterDefect<R>

  constructor(ended: OnEnd, afterDefect: AfterDefect<R>) {
    super()
    this.ended = ended
    this.afterDefect = afterDefect
  }
}

/** Work in flight, with fibers and without. */
export interface InFlight<R> {
  /**
   * Starts work in a fiber. `ended` is called once: with true if the work finished, with false if
   * it failed or was cancelled.
   */
  readonly run: (work: Effect.Effect<unknown, unknown, R>, ended: OnEnd) => void
  /** Starts callback work, which has no fiber yet. */
  readonly add: (work: CallbackWork<R>) => void
  /**
   * Makes and starts callback work.
   *
   * @param afterDefect how the work continues after a step that has thrown.
   */
  readonly begin: (ended: OnEnd, afterDefect: AfterDefect<R>) => InFlightWork<R>
  /** Number of items of work in flight. */
  readonly size: Effect.Effect<number>
  /** Waits until no work is in flight. */
  readonly none: Effect.Effect<void>
}

/** Tracks work in flight, so that a stop can wait for it, and cancels it when the scope closes. */
export const makeInFlight = Effect.fnUntraced(function* <R>() {
  const fibers = yield* FiberSet.make<unknown>()
  const fork = yield* FiberSet.runtime(fibers)<R>()
  let waiting: Array<() => void> = []
  const tracker: Tracker<R> = {
    callbacks: new IntrusiveList(),
    fork: (work, ended) =>
      fork(work).addObserver((exit) =>
        ended(exit._tag === "Success" ? { value: exit.value } : undefined)
      ),
    emptied: () => {
      const those = waiting
      waiting = []
      for (const resume of those) resume()
    },
    isClosed: false
  }
  const { callbacks } = tracker
  const add: InFlight<R>["add"] = (work) => work.begin(tracker)
  const noCallbacks = Effect.callback<void>((resume) => {
    if (callbacks.size === 0) resume(Effect.void)
    else waiting.push(() => resume(Effect.void))
  })
  const none: Effect.Effect<void> = Effect.suspend(() =>
    Effect.andThen(
      noCallbacks,
      Effect.andThen(FiberSet.awaitEmpty(fibers), () => (callbacks.size === 0 ? Effect.void : none))
    )
  )
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      tracker.isClosed = true
      for (const work of callbacks.takeAll()) work.cancel()
    })
  )
  const inFlight: InFlight<R> = {
    run: (work, ended) => tracker.fork(work, (result) => ended(result !== undefined)),
    add,
    begin: (ended, afterDefect) => {
      const work = new ClosureWork(ended, afterDefect)
      add(work)
      return work
    },
    size: Effect.map(FiberSet.size(fibers), (count) => count + callbacks.size),
    none
  }
  return inFlight
})
