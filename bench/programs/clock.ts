/* One clock for all processes: the machine's monotonic one, which nobody sets. */

const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** ms, the same in all processes of a machine. */
export const now = (): number => performance.now() + offset

/** What a stamp begins with: no other body of the benchmark does. */
export const stampMark = "@"
/** Of a stamp, in bytes. */
export const stampLength = 17

/** A moment as the beginning of a body. */
export const stamp = (moment: number): string =>
  stampMark + moment.toFixed(3).padStart(stampLength - 1, "0")

/** The moment that a body begins with. */
export const readStamp = (body: Buffer, at: number): number =>
  Number(body.toString("latin1", at + 1, at + stampLength))
