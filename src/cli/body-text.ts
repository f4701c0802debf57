import { bytesText } from "./bytes.ts"
import { countObeyed, visible } from "./visible.ts"

/** Bytes of a body that are shown; all of it goes out with --raw. */
const maxShownLength = 4 * 1024

/** A body made fit for a terminal. */
export interface ShownBody {
  /** Empty where the body is, and where it is no text. */
  readonly lines: ReadonlyArray<string>
  /** What was done to it, and how large it is. */
  readonly note: string
}

/** The body as text; undefined where its bytes are none. */
export const textOf = (body: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}

/** Where a text of at most so many bytes may end: not within a character. */
const endBefore = (body: Uint8Array, limit: number): number => {
  let end = limit
  while (end > 0 && ((body[end] ?? 0) & 0xc0) === 0x80) end--
  return end
}

/** A body as it may be written to a terminal: nothing in it is obeyed. */
export const shownBody = (body: Uint8Array): ShownBody => {
  const size = bytesText(body.length)
  if (body.length === 0) return { lines: [], note: "empty" }
  const whole = textOf(body)
  const isWhole = body.length <= maxShownLength
  const text = isWhole ? whole : textOf(body.subarray(0, endBefore(body, maxShownLength)))
  if (whole === undefined || text === undefined)
    return { lines: [], note: `${size} that are no text; --raw writes them as they are` }
  const found = countObeyed(text)
  const notes = [
    size,
    ...(isWhole ? [] : [`the first ${bytesText(maxShownLength)} of it; --raw writes all`]),
    ...(found === 0
      ? []
      : [
          `${found} control ${found === 1 ? "character" : "characters"} shown as \\u....; --raw writes it as it is`
        ])
  ]
  return { lines: visible(text).split("\n"), note: notes.join("; ") }
}
