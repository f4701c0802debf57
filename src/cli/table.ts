/** Lays rows out in columns, a page at a time. */
export interface Table {
  /** The lines of a page of rows; those of the first page begin with the headings. */
  readonly lines: (rows: ReadonlyArray<ReadonlyArray<string>>) => ReadonlyArray<string>
}

/**
 * Columns as wide as what they have had to hold so far, two spaces apart.
 *
 * @param texts columns that hold texts; those after them hold figures, and end together. (Default: all)
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
