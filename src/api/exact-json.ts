/** What JSON can hold, and numbers as they were written. */
type Reviver = (
  this: unknown,
  key: string,
  value: unknown,
  context: { readonly source?: string }
) => unknown

/** A number that a double may not hold, or that is written in another way than by JSON.stringify. */
const unusualNumber = /\d{16}|\d\.|\d[eE]|-0/

const rawJson = (source: string): unknown => {
  const make: unknown = Reflect.get(JSON, "rawJSON")
  return typeof make === "function" ? make(source) : Number(source)
}

const keepNumbers: Reviver = (_, value, { source }) =>
  typeof value === "number" && source !== undefined && String(value) !== source
    ? rawJson(source)
    : value

/**
 * Parses JSON so that JSON.stringify writes its numbers as they were written: a double would round
 * long ones. Throws where it does not parse.
 */
export const parseExact = (text: string): unknown =>
  unusualNumber.test(text) ? JSON.parse(text, keepNumbers as never) : JSON.parse(text)
