/** Returns a size of the terminal on stdout. One whose size nobody has set, as in CI, says 0. */
const sizeOf = (size: "columns" | "rows"): number | undefined =>
  process.stdout.isTTY && process.stdout[size] > 0 ? process.stdout[size] : undefined

/** Returns the width of the terminal on stdout in columns; undefined if there is none, or unknown. */
export const screenWidth = (): number | undefined => sizeOf("columns")

/** Returns the terminal's height in lines, without the line of the prompt. */
export const screenHeight = (): number | undefined => {
  const rows = sizeOf("rows")
  return rows === undefined ? undefined : rows - 1
}

/** Truncates a line to the width, if there is one. */
export const cutTo = (width: number | undefined, line: string): string =>
  width === undefined || line.length <= width ? line : `${line.slice(0, Math.max(1, width) - 1)}…`

/** Below this number of columns, texts are not wrapped. */
const narrowest = 20

/**
 * Returns a label and its text, wrapped to the width if there is one. Continuation lines are
 * indented to the text.
 */
export const labelled = (
  label: string,
  text: string,
  width: number | undefined
): ReadonlyArray<string> => {
  const columns = width === undefined ? text.length : Math.max(narrowest, width - label.length)
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line].map((part, index) =>
    `${index === 0 ? label : " ".repeat(label.length)}${part}`.trimEnd()
  )
}

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

/** Formats rows in columns, a page at a time. */
interface Table {
  /** Returns the lines of a page of rows. The first page begins with the headings. */
  readonly lines: (rows: ReadonlyArray<ReadonlyArray<string>>) => ReadonlyArray<string>
}

/**
 * Columns are as wide as their widest cell so far, two spaces apart.
 *
 * @param texts number of text columns, aligned left; the others are numbers, aligned right.
 *   (Default: all)
 */
export const makeTable = (headings: ReadonlyArray<string>, texts = headings.length): Table => {
  const widths = headings.map(({ length }) => length)
  let begun = false
  return {
    lines: (rows) => {
      const all = begun ? rows : [headings, ...rows]
      begun = true
      for (const row of all)
        for (const [column, text] of row.entries())
          widths[column] = Math.max(widths[column] ?? 0, text.length)
      return all.map((row) =>
        row
          .map((text, column) =>
            column < texts ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0)
          )
          .join("  ")
          .trimEnd()
      )
    }
  }
}

const bars = "▁▂▃▄▅▆▇█"
/** Most bars of a line: more are put together. */
const maxBars = 72

/** Draws counts as a line of bars, the highest for the most; a space where there are none. */
export const sparkline = (counts: ReadonlyArray<number>): string => {
  const each = Math.max(1, Math.ceil(counts.length / maxBars))
  const sums = Array.from({ length: Math.ceil(counts.length / each) }, (_, index) =>
    counts.slice(index * each, (index + 1) * each).reduce((sum, count) => sum + count, 0)
  )
  const most = Math.max(1, ...sums)
  return sums
    .map((sum) => (sum === 0 ? " " : bars[Math.ceil((sum / most) * bars.length) - 1]))
    .join("")
    .trimEnd()
}
