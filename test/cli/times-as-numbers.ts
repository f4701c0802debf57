/** What lies between is a time of 2001 to 2096, ms since the epoch: nothing else is as large here. */
const [firstMs, lastMs] = [1e12, 4e12]

/** Lists where numbers are in JSON that can only be times in ms. */
export const timesAsNumbers = (value: unknown, path = ""): ReadonlyArray<string> => {
  if (typeof value === "number")
    return Math.abs(value) >= firstMs && Math.abs(value) < lastMs ? [`${path} is ${value}`] : []
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, one]) => timesAsNumbers(one, `${path}.${name}`))
}
