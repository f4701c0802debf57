const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const inUnits = (ms: number, unit: readonly [string, number], finer: readonly [string, number]) => {
  const total = Math.round(ms / finer[1])
  const each = unit[1] / finer[1]
  const rest = total % each
  const whole = `${Math.floor(total / each)} ${unit[0]}`
  return rest === 0 ? whole : `${whole} ${rest} ${finer[0]}`
}

/** Formats a duration (ms) in at most two units: `12 ms`, `2.5 s`, `1 h 5 min`. */
export const spanText = (ms: number): string => {
  if (ms < second) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10 * second) return `${Number((ms / second).toFixed(1))} s`
  if (ms < minute) return `${Math.round(ms / second)} s`
  if (ms < hour) return inUnits(ms, ["min", minute], ["s", second])
  if (ms < day) return inUnits(ms, ["h", hour], ["min", minute])
  return inUnits(ms, ["d", day], ["h", hour])
}
