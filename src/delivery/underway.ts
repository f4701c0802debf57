import { Effect, FiberSet } from "effect"
import type { Linked } from "./lanes/chain.ts"
import { Chain } from "./lanes/chain.ts"

/** Work that goes on without a fiber for as long as all goes well. Only its first end counts. */
export interface Plain<R> {
  /** Does a part of it, unless it has ended or was cut off. What that throws ends the plain way. */
  readonly step: (part: () => void) => void
  /** It has come to its end. */
  readonly done: () => void
  /** It goes on as a fiber. */
  readonly goOn: (work: Effect.Effect<void, unknown, R>) => void
  /** Says what is to be stopped where the work is cut off. */
  readonly stopBy: (stop: () => void) => void
}

/** How work without a fiber is cut off. */
interface Cut extends Linked<Cut> {
  readonly off: () => void
}

/** What is to be done with the messages in hand, as fibers and without. */
export interface Underway<R> {
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
  ) => Plain<R>
  /** How much of it there is. */
  readonly size: Effect.Effect<number>
  /** Waits until there is none. */
  readonly none: Effect.Effect<void>
}

/**
 * Keeps account of work, so that a stop can wait for it, and cuts it off when the scope closes. A
 * fiber for each message costs a tenth of a delivery (docs/performance.md): most need none.
 */
export const makeUnderway = Effect.fnUntraced(function* <R>() {
  const fibers = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(fibers)<R>()
  const plain = new Chain<Cut>()
  let waiting: Array<() => void> = []

  const run: Underway<R>["run"] = (work, ended) =>
    fork(work).addObserver((exit) => ended(exit._tag === "Success"))

  const begin: Underway<R>["begin"] = (ended, afterDefect) => {
    let stop: (() => void) | undefined
    let isOpen = true
    const leave = () => {
      if (!isOpen) return false
      isOpen = false
      plain.remove(cut)
      if (plain.size === 0 && waiting.length > 0) {
        for (const resume of waiting) resume()
        waiting = []
      }
      return true
    }
    const off = () => {
      if (!leave()) return
      stop?.()
      ended(false)
    }
    const cut: Cut = { off, before: undefined, after: undefined }
    const goOn: Plain<R>["goOn"] = (work) => {
      if (!isOpen) return
      run(work, ended)
      leave()
    }
    plain.add(cut)
    return {
      step: (part) => {
        if (!isOpen) return
        try {
          part()
        } catch (defect) {
          goOn(afterDefect(defect))
        }
      },
      done: () => {
        if (leave()) ended(true)
      },
      goOn,
      stopBy: (how) => {
        stop = how
      }
    }
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
      for (const { off } of [...plain]) off()
    })
  )
  const underway: Underway<R> = {
    run,
    begin,
    size: Effect.map(FiberSet.size(fibers), (count) => count + plain.size),
    none
  }
  return underway
})
