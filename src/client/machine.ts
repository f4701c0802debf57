/* Clock, timers and randomness of whatever the client runs on: Node, Bun, Deno or a browser. */

/** The monotonic clock, ms. */
export const nowMs = (): number => performance.now()

/** The longest that a timer waits, ms: told to wait longer, it does not wait at all. */
export const maxTimerMs = 2 ** 31 - 1

/** Refuses what is no time within bounds, ms; undefined, which stands for a default, is one. */
export const checkMs = (
  name: string,
  value: number | undefined,
  least: number,
  most = maxTimerMs
): void => {
  if (value !== undefined && !(typeof value === "number" && value >= least && value <= most))
    throw new TypeError(`${name} must be a number from ${least} to ${most} (ms): it is ${value}`)
}

/** Returns a number from 0 to 1. */
export const random = (): number => Math.random()

/** Returns an id that no other call returns: 32 hex digits. */
export const newId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0")
  ).join("")

/** Waits. Rejects with the signal's reason once that is aborted. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    const end = (settle: () => void) => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", abort)
      settle()
    }
    const abort = () => end(() => reject(signal?.reason))
    const timer = setTimeout(() => end(resolve), ms)
    signal?.addEventListener("abort", abort)
  })

/** A signal that is aborted with the caller's, or when nothing touches it for a time. */
interface Watched {
  readonly signal: AbortSignal
  /** Begins the time anew. */
  readonly touch: () => void
  readonly stop: () => void
  /** Stops, and aborts the signal, for what would else go on. */
  readonly abort: () => void
}

/**
 * Makes a signal that is aborted with the caller's, or when nothing touches it for a time.
 *
 * @param late makes the reason of the abort after that time.
 */
export const watch = (ms: number, signal: AbortSignal | undefined, late: () => Error): Watched => {
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  const begin = () => setTimeout(() => controller.abort(late()), ms)
  let timer = begin()
  if (signal?.aborted === true) abort()
  signal?.addEventListener("abort", abort)
  const stop = () => {
    clearTimeout(timer)
    signal?.removeEventListener("abort", abort)
  }
  return {
    signal: controller.signal,
    touch: () => {
      clearTimeout(timer)
      timer = begin()
    },
    stop,
    abort: () => {
      stop()
      controller.abort()
    }
  }
}

/**
 * Runs something with a signal that is aborted with the caller's, or after a time.
 *
 * @param late makes the reason of the abort after that time.
 */
export const within = async <A>(
  ms: number,
  signal: AbortSignal | undefined,
  late: () => Error,
  run: (signal: AbortSignal) => Promise<A>
): Promise<A> => {
  const watched = watch(ms, signal, late)
  try {
    return await run(watched.signal)
  } catch (error) {
    // What was aborted fails with errors of many kinds.
    throw watched.signal.aborted ? watched.signal.reason : error
  } finally {
    watched.stop()
  }
}

/** Settles as a promise does, or rejects with the signal's reason once that is aborted. */
export const unlessAborted = <A>(promise: Promise<A>, signal: AbortSignal): Promise<A> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener("abort", abort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort))
  })

/**
 * Settles as a promise does; with undefined if it has not settled after a time. Rejects with the
 * signal's reason once that is aborted.
 *
 * @param ms undefined: without such a time.
 */
export const inTime = <A>(
  promise: Promise<A>,
  ms: number | undefined,
  signal: AbortSignal
): Promise<A | undefined> => {
  if (ms === undefined) return unlessAborted(promise, signal)
  const ended = new AbortController()
  const late = pause(Math.max(0, ms), ended.signal).then(
    () => undefined,
    () => undefined
  )
  return unlessAborted(Promise.race([promise, late]), signal).finally(() => ended.abort())
}
