import { labelled } from "./screen.ts"

/** Columns between two texts that stand side by side. */
const gap = 3
/** A column that is narrower is hard to read: the texts then follow each other. */
const minColumn = 36

/** Returns lines of at most a width, if there is one. A word that is longer is cut. */
export const wrapped = (
  lines: ReadonlyArray<string>,
  width: number | undefined
): ReadonlyArray<string> =>
  width === undefined
    ? lines
    : lines.flatMap((line) => labelled("", line, width)).flatMap((line) => cut(line, width))

/** Cuts a line without spaces into pieces. */
const cut = (line: string, width: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let from = 0; from === 0 || from < line.length; from += width)
    pieces.push(line.slice(from, from + width))
  return pieces
}

/**
 * Returns two texts side by side, or one after the other where the screen is narrow or there is
 * none.
 */
export const sideBySide = (
  left: ReadonlyArray<string>,
  right: ReadonlyArray<string>,
  width: number | undefined
): ReadonlyArray<string> => {
  const column = width === undefined ? 0 : Math.floor((width - gap) / 2)
  if (column < minColumn) return [...left, "", ...right]
  const [one, other] = [wrapped(left, column), wrapped(right, column)]
  return Array.from({ length: Math.max(one.length, other.length) }, (_, n) =>
    `${(one[n] ?? "").padEnd(column + gap)}${other[n] ?? ""}`.trimEnd()
  )
}
