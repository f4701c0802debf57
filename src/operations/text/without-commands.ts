/**
 * Returns a message without what it says of the command line: whoever reads it here has none.
 */
export const withoutCommands = (message: string): string =>
  message.replace(/(?:[:;,]| \()(?: [\w' ]+)? ?`petrel [^`]*`[^;:]*/g, "")
