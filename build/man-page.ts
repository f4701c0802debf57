/** Returns a text as roff takes it: backslashes, and what begins with a dot or a quote, escaped. */
const plain = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^(?=[.'])/gm, "\\&")

/**
 * Returns the manual page petrel(1), in roff.
 *
 * @param reference docs/reference/commands.md, which has what `--help` prints for each command.
 * @param version such as `0.1.0`.
 */
export const manPage = (reference: string, version: string): string => {
  const [first = "", ...sections] = reference.split(/^## /m)
  const helpIn = (section: string): string => /^```\n(.*?)^```$/ms.exec(section)?.[1] ?? ""
  const verbatim = (text: string): string => `.nf\n${plain(text.trimEnd())}\n.fi\n`
  const [description = "", ...rest] = helpIn(first).split(/\n\n(?=[A-Z])/)
  const summary = description.replace(/^DESCRIPTION\s+/, "").replace(/^./, (c) => c.toLowerCase())
  return [
    `.TH PETREL 1 "" "petrel ${version}" "User Commands"\n`,
    `.SH NAME\npetrel \\- ${plain(summary.trim())}\n`,
    ...rest.map((block) => {
      const [heading = "", ...lines] = block.split("\n")
      return `.SH ${heading}\n${verbatim(lines.join("\n"))}`
    }),
    ".SH COMMANDS\n",
    ...sections.map((section) => {
      const [heading = ""] = section.split("\n")
      return `.SS ${plain(heading)}\n${verbatim(helpIn(section))}`
    })
  ].join("")
}
