/** Returns the width of the terminal on stdout in columns; undefined without a terminal. */
export const screenWidth = (): number | undefined =>
  process.stdout.isTTY ? process.stdout.columns : undefined

/** Returns the terminal's height in lines, without the line of the prompt. */
export const screenHeight = (): number | undefined =>
  process.stdout.isTTY ? process.stdout.rows - 1 : undefined

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
  const room = width === undefined ? text.length : Math.max(narrowest, width - label.length)
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > room) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line].map((part, index) =>
    `${index === 0 ? label : " ".repeat(label.length)}${part}`.trimEnd()
  )
}
