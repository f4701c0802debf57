import type { Redirect, Response } from "../../domain/outcome.ts"
import { plainText } from "../../history/line.ts"
import { bytesText } from "../../operations/text/bytes.ts"
import { shownBody } from "./body-text.ts"
import { wrapped } from "./screen.ts"

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
