const units = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 } as const

const pattern = /^(\d+(?:\.\d+)?) ?(?:([KMGT])?i?B?)$/i

const factors: Record<string, number> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

/** The input that `readBytes` accepts, for error messages. */
export const bytesExpected = "must be a size such as 512MiB, 1GiB or a number of bytes"

/** Parses `1GiB`, `500 MB` or `1048576`. All prefixes are powers of 1024. */
export const readBytes = (text: string): number | undefined => {
  const found = pattern.exec(text.trim())
  if (found === null) return undefined
  const [, count = "", unit = ""] = found
  const bytes = Number(count) * (factors[unit.toUpperCase()] ?? 1)
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : undefined
}

/**
 * Formats a number of bytes in the largest fitting unit, with at most one decimal: `960 KiB`, `1
 * GiB`.
 */
export const bytesText = (bytes: number): string => {
  const [name, size] = Object.entries(units).findLast(([, size]) => bytes >= size) ?? ["B", 1]
  return `${Number((bytes / size).toFixed(1))} ${name}`
}
