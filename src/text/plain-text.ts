/** Makes external text safe for a terminal: no control characters, one line. */
export const plainText = (text: string): string => text.replaceAll(/\p{Cc}+/gu, " ")

/** Returns the body as text; undefined if it is not valid UTF-8. */
export const textOf = (body: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}

const inBrackets = / \((?:[^()`]* )?`petrel [^`]*`[^()]*\)/g
const clause = /[:;,](?: [\w' -]+)? ?`petrel [^`]*`(?:[^;:.]|[.:](?=\S))*/g

/**
 * Returns a message without what it says of the command line: whoever reads it here has none. Its
 * commands, in backquotes, are in brackets or in a clause of their own, of which no other depends.
 */
export const withoutCommands = (message: string): string =>
  message.replace(inBrackets, "").replace(clause, "")

/** A token of the API, or what begins as one. */
const token = /ptl_[0-9A-Za-z]+_[\w-]+/g

/**
 * Returns a text without the tokens of the API in it. Who sends one in the wrong place, as a name in
 * a path, must not find it in a log or an answer, which others read.
 */
export const withoutTokens = (text: string): string =>
  text.includes("ptl_") ? text.replaceAll(token, "ptl_…") : text
