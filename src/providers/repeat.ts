import { isDeepStrictEqual } from "node:util"
import { bodyJson } from "./body.ts"

/** Returns a body's JSON without some of its fields; undefined if it is no JSON object. */
const withoutFields = (body: Uint8Array, names: ReadonlyArray<string>): object | undefined => {
  const json = bodyJson(body)
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined
  return Object.fromEntries(Object.entries(json).filter(([name]) => !names.includes(name)))
}

/**
 * Returns true if two bodies say the same of an event: they are JSON objects that differ in nothing
 * but fields that tell of the sending.
 *
 * @param varying names of these fields.
 */
export const saysTheSame = (
  one: Uint8Array,
  other: Uint8Array,
  varying: ReadonlyArray<string>
): boolean => {
  const before = withoutFields(one, varying)
  return before !== undefined && isDeepStrictEqual(before, withoutFields(other, varying))
}
