/** A token of the API, or what begins as one. */
const token = /ptl_[0-9A-Za-z]+_[\w-]+/g

/**
 * Returns a text without the tokens of the API in it. Who sends one in the wrong place, as a name in
 * a path, must not find it in a log or an answer, which others read.
 */
export const withoutTokens = (text: string): string =>
  text.includes("ptl_") ? text.replaceAll(token, "ptl_…") : text
