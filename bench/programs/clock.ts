/* One clock for all processes: the machine's monotonic clock, which is never set. */

const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Returns the time in ms, the same in all processes of a machine. */
export const now = (): number => performance.now() + offset

/** The first character of a stamp. No other body of the benchmark begins with it. */
export const stampMark = "@"
/** Length of a stamp, in bytes. */
export const stampLength = 17

/** Returns a time as the beginning of a body. */
export const stamp = (moment: number): string =>
  stampMark + moment.toFixed(3).padStart(stampLength - 1, "0")

/** Returns the time at the beginning of a body. */
export const readStamp = (body: Buffer, at: number): number =>
  Number(body.toString("latin1", at + 1, at + stampLength))
