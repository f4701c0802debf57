const inBrackets = / \((?:[^()`]* )?`petrel [^`]*`[^()]*\)/g
const clause = /[:;,](?: [\w' -]+)? ?`petrel [^`]*`(?:[^;:.]|[.:](?=\S))*/g

/**
 * Returns a message without what it says of the command line: whoever reads it here has none. Its
 * commands, in backquotes, are in brackets or in a clause of their own, of which no other depends.
 */
export const withoutCommands = (message: string): string =>
  message.replace(inBrackets, "").replace(clause, "")
