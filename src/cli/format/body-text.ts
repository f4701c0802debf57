import { bytesText } from "../../operations/text/bytes.ts"
import { textOf } from "../../operations/text/utf8.ts"
import { countObeyed, visible } from "./visible.ts"

/** Maximum number of bytes of a body that are shown. --raw writes the whole body. */
const maxShownLength = 4 * 1024

/** A body prepared for a terminal. */
export interface ShownBody {
  /** Empty if the body is empty or is not text. */
  readonly lines: ReadonlyArray<string>
  /** The size of the body, and how it was changed. */
  readonly note: string
}

/** Returns the last position up to the limit that is not within a character. */
const endBefore = (body: Uint8Array, limit: number): number => {
  let end = limit
  while (end > 0 && ((body[end] ?? 0) & 0xc0) === 0x80) end--
  return end
}

/** Returns a body that is safe to write to a terminal: control sequences in it have no effect. */
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
