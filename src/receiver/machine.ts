/* Clock, timers and randomness of the receiver's kit. */

/** The wall clock, ms since 1970. */
export const wallMs = (): number => Date.now()

/** The monotonic clock, ms. */
export const monotonicMs = (): number => performance.now()

/** Returns a number from 0 to 1. */
export const random = (): number => Math.random()

/** Longest time of a timer, ms: a longer one would end at once. */
const maxTimerMs = 2_147_483_647

/** Calls once, after a time, unless it is cancelled. Does not keep the process alive. */
export const after = (ms: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, Math.min(ms, maxTimerMs))
  timer.unref()
  return () => clearTimeout(timer)
}

/** Waits; returns at once when the signal is aborted. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve()
      return
    }
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener("abort", end)
  })

/**
 * Settles as a promise does, or rejects if that takes too long.
 *
 * @param late makes the reason of the rejection.
 * @param afterwards gets what the promise brings too late, such as a connection to be given back.
 */
export const within = <A>(
  ms: number,
  promise: Promise<A>,
  late: () => Error,
  afterwards?: (value: A) => void
): Promise<A> =>
  new Promise((resolve, reject) => {
    let isLate = false
    const timer = setTimeout(
      () => {
        isLate = true
        reject(late())
      },
      Math.min(ms, maxTimerMs)
    )
    promise.then(
      (value) => {
        clearTimeout(timer)
        if (isLate) afterwards?.(value)
        else resolve(value)
      },
      (error) => {
        clearTimeout(timer)
        reject(error)
      }
    )
  })

/** Rejects as soon as the signal is aborted, whatever the work does. */
export const unlessAborted = async <A>(
  work: Promise<A>,
  signal: AbortSignal | undefined
): Promise<A> => {
  if (signal === undefined) return work
  let abort: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener("abort", abort)
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener("abort", abort)
  }
}
