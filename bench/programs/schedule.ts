import { now } from "./clock.ts"

/** Used to sleep for less than a timer's resolution of 1 ms. */
const bell = new Int32Array(new SharedArrayBuffer(4))

/**
 * An open loop: calls `send` for each number when it is due, `perSecond` times a second, regardless
 * of how long earlier requests take. `send` gets the time that it was due. A timer is up to 1 ms
 * late and a busy loop takes a whole core, so the thread sleeps. It sleeps for at most 1 ms at a
 * time, since it must read answers.
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
