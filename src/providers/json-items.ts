/**
 * Finds the items of an array in JSON that JSON.parse has taken, as the bytes that came: what is
 * parsed and written anew may differ from what the sender wrote, such as in large numbers.
 */

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openArray, closeArray, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const skipSpace = (json: Uint8Array, from: number): number => {
  let at = from
  while (isSpace(json[at])) at += 1
  return at
}

/** Returns the place after a string that begins at `from`. */
const skipString = (json: Uint8Array, from: number): number => {
  let at = from + 1
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1
  return at + 1
}

/** Returns the place after a value: the comma or the bracket that follows it, or the end. */
const skipValue = (json: Uint8Array, from: number): number => {
  let depth = 0
  let at = from
  while (at < json.length) {
    const byte = json[at]
    if (byte === quote) {
      at = skipString(json, at)
      continue
    }
    if (byte === openArray || byte === openObject) depth += 1
    else if (byte === closeArray || byte === closeObject) {
      if (depth === 0) return at
      depth -= 1
    } else if (byte === comma && depth === 0) return at
    at += 1
  }
  return at
}

const withoutSpaceAtEnd = (json: Uint8Array, from: number, until: number): Uint8Array => {
  let end = until
  while (end > from && isSpace(json[end - 1])) end -= 1
  return json.subarray(from, end)
}

const itemsFrom = (json: Uint8Array, from: number): ReadonlyArray<Uint8Array> => {
  const items: Array<Uint8Array> = []
  let at = skipSpace(json, from + 1)
  while (at < json.length && json[at] !== closeArray) {
    const end = skipValue(json, at)
    items.push(withoutSpaceAtEnd(json, at, end))
    at = skipSpace(json, json[end] === comma ? end + 1 : end)
  }
  return items
}

/** Returns the items of a body that is an array. */
export const itemsOfArray = (json: Uint8Array): ReadonlyArray<Uint8Array> => {
  const start = skipSpace(json, 0)
  return json[start] === openArray ? itemsFrom(json, start) : []
}

/** Returns the items of the array that a body, which is an object, has under a name of ASCII. */
export const itemsUnder = (json: Uint8Array, name: string): ReadonlyArray<Uint8Array> => {
  let at = skipSpace(json, 0)
  if (json[at] !== openObject) return []
  let items: ReadonlyArray<Uint8Array> = []
  at = skipSpace(json, at + 1)
  while (at < json.length && json[at] === quote) {
    const keyEnd = skipString(json, at)
    const key = Buffer.from(json.subarray(at + 1, keyEnd - 1)).toString("latin1")
    const afterKey = skipSpace(json, keyEnd)
    const value = skipSpace(json, json[afterKey] === colon ? afterKey + 1 : afterKey)
    // As in JSON.parse, the last of several counts.
    if (key === name) items = json[value] === openArray ? itemsFrom(json, value) : []
    const end = skipValue(json, value)
    at = skipSpace(json, json[end] === comma ? end + 1 : end)
    if (json[end] !== comma) break
  }
  return items
}
