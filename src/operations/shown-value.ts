/** Upper bound of what is shown of a value, characters. */
const maxShown = 80
/** How deep a value is shown. */
const maxDepth = 4

/** Returns a text, cut where it is longer than `most` characters. */
export const shortened = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text

const parts = (value: unknown, depth: number): string => {
  if (typeof value === "string") return JSON.stringify(shortened(value, maxShown - 2))
  if (typeof value !== "object" || value === null) return String(value)
  if (depth === 0) return Array.isArray(value) ? "[…]" : "{…}"
  let text = ""
  // What is cut anyhow is not written: the value may be as large as a request.
  const add = (part: string) => {
    text += `${text === "" ? "" : ","}${part}`
    return text.length <= maxShown
  }
  if (Array.isArray(value)) {
    value.slice(0, maxShown).every((one) => add(parts(one, depth - 1)))
    return `[${text}]`
  }
  for (const name in value)
    if (!add(`${parts(name, 0)}:${parts(Reflect.get(value, name), depth - 1)}`)) break
  return `{${text}}`
}

/** Returns a value as JSON for people: short, whatever it holds. */
export const shownValue = (value: unknown): string => shortened(parts(value, maxDepth), maxShown)
