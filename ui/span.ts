/* Durations as the API has them. */
const unitMs: Readonly<Record<string, number>> = {
  nano: 1e-6,
  milli: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000
}

/** Returns the ms of a duration as answers have it: `30 seconds`. */
export const spanMs = (text: string): number => {
  const [count, unit = ""] = text.split(" ")
  return Number(count) * (unitMs[unit.replace(/s$/, "")] ?? Number.NaN)
}
