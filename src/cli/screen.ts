/** The width of the terminal that results are read on, in columns; undefined where there is none. */
export const screenWidth = (): number | undefined =>
  process.stdout.isTTY ? process.stdout.columns : undefined

/** Its height in lines, without the one of the prompt. */
export const screenHeight = (): number | undefined =>
  process.stdout.isTTY ? process.stdout.rows - 1 : undefined

/** A line that does not run over the width, where there is one. */
export const cutTo = (width: number | undefined, line: string): string =>
  width === undefined || line.length <= width ? line : `${line.slice(0, Math.max(1, width) - 1)}…`

/** Fewer columns are not worth breaking a text for. */
const narrowest = 20

/**
 * A label and what is said under it, in lines that do not run over the width, where there is one;
 * those after the first stand under what is said.
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
