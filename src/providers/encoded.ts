/** Decoders that take only what encodes back to the same text: Buffer.from skips what it does not know. */

/** Returns the bytes of lower-case hexadecimal digits. */
export const fromHex = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "hex")
  return bytes.length > 0 && bytes.toString("hex") === text ? bytes : undefined
}

/** Returns the bytes of base64 with padding. */
export const fromBase64 = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "base64")
  return bytes.length > 0 && bytes.toString("base64") === text ? bytes : undefined
}

/** Returns ms since the epoch of a whole number of seconds or, where `unit` says so, of ms. */
export const timeOf = (text: string | undefined, unit: "s" | "ms" = "s"): number | undefined => {
  if (text === undefined || !/^\d{1,14}$/.test(text)) return undefined
  const at = unit === "s" ? Number(text) * 1_000 : Number(text)
  return at <= maxTimeMs ? at : undefined
}

/** What a Date can hold, ms. */
const maxTimeMs = 8_640_000_000_000_000

/** Returns the `name=value` pairs of a header; undefined if a part is none. */
export const pairsOf = (
  header: string,
  separator: string
): ReadonlyArray<readonly [name: string, value: string]> | undefined => {
  const pairs: Array<readonly [string, string]> = []
  for (const part of header.split(separator)) {
    const end = part.indexOf("=")
    if (end === -1) return undefined
    pairs.push([part.slice(0, end).trim(), part.slice(end + 1).trim()])
  }
  return pairs
}

/** Returns the decoded ones, without what could not be decoded. */
export const decoded = (
  texts: ReadonlyArray<string>,
  decode: (text: string) => Buffer | undefined
): ReadonlyArray<Buffer> => texts.flatMap((text) => decode(text) ?? [])
