import { now } from "./clock.ts"

/** Wakes a thread that must not wait for a timer's whole ms. */
const bell = new Int32Array(new SharedArrayBuffer(4))

/**
 * Calls `send` for each number when it is due, `perSecond` times a second and however long what was
 * sent before takes: an open loop. `send` gets the moment at which it was due. A timer comes up to
 * a ms late and a busy loop takes a whole core, so the thread sleeps, at most a ms at a time for it
 * has answers to read.
 */
export const openLoop = (
  perSecond: number,
  count: number,
  send: (number: number, due: number) => void
): Promise<void> => {
  const interval = 1000 / perSecond
  const first = now() + 50
  let number = 0
  return new Promise((resolve) => {
    const turn = () => {
      const wait = Math.min(first + number * interval - now(), 1)
      if (wait > 0) Atomics.wait(bell, 0, 0, wait)
      const moment = now()
      while (number < count && first + number * interval <= moment) {
        const due = first + number * interval
        send(number++, due)
      }
      if (number < count) setImmediate(turn)
      else resolve()
    }
    turn()
  })
}
