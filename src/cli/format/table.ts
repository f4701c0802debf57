/** Formats rows in columns, a page at a time. */
export interface Table {
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
