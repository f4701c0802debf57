import type { Redirect, Response } from "../../domain/outcome.ts"
import { plainText, textOf } from "../../text/plain-text.ts"
import { bytesText } from "../../text/quantities.ts"
import { wrapped } from "./screen.ts"
import { countObeyed, visible } from "./visible.ts"

/** Maximum number of bytes of a body that are shown. --raw writes the whole body. */
const maxShownLength = 4 * 1024

/** A body prepared for a terminal. */
interface ShownBody {
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
    return { lines: [], note: `${size} that are not text; --raw writes them as they are` }
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

/** Headers that say why a receiver did not take a request, or when it will. */
const tellingHeaders = ["retry-after", "location"]
/** Lines of a body that are shown in short. */
const shortLines = 3

/** Returns a line for each redirect that was followed. */
export const redirectLines = (redirects: ReadonlyArray<Redirect> = []): ReadonlyArray<string> =>
  redirects.map(({ status, to }) => `status ${status}, redirected to ${plainText(to)}`)

/** Returns the lines of a body that is text, after an empty line. */
export const bodyLines = (body: string): ReadonlyArray<string> => {
  const { lines, note } = shownBody(Buffer.from(body, "utf8"))
  return ["", ...(lines.length === 0 ? [`(${note})`] : lines)]
}

/** Returns `(of 3 KiB)` for a body that is not kept as a whole. */
const sizeLines = ({ body, bytes }: Response): ReadonlyArray<string> =>
  bytes > Buffer.byteLength(body) ? [`(of ${bytesText(bytes)})`] : []

const headerLines = (headers: ReadonlyArray<readonly [string, string]>): ReadonlyArray<string> =>
  headers.map(([name, value]) => `${name}: ${plainText(value)}`)

/** Returns the headers and the body of an answer, as they are kept. */
export const responseLines = (response: Response): ReadonlyArray<string> => [
  ...headerLines(Object.entries(response.headers)),
  ...bodyLines(response.body),
  ...sizeLines(response)
]

/**
 * Returns the beginning of an answer: the headers that say why it failed, and the first lines of
 * its body.
 *
 * @param width of a line; undefined if lines are not wrapped.
 */
export const shortResponseLines = (
  response: Response,
  width: number | undefined
): ReadonlyArray<string> => {
  const headers = Object.entries(response.headers).filter(([name]) => tellingHeaders.includes(name))
  const body = shownBody(Buffer.from(response.body.trim(), "utf8")).lines
  const lines = wrapped(
    body.filter((line) => line.trim() !== ""),
    width
  )
  return [
    ...wrapped(headerLines(headers), width),
    ...lines.slice(0, shortLines),
    ...(lines.length > shortLines ? ["…"] : sizeLines(response))
  ]
}
