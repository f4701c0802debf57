/**
 * What a terminal obeys (C0, DEL and C1 but for the ends of lines and tabs), what turns around the
 * text after it or is not seen, and what else ends a line. Not the joiners that scripts and emoji need.
 */
const obeyed = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu

const sequence = "\u001b["
/** The colours that results are painted in, and their end. */
const colour = /^(?:2|22|31|32|33|36|39)m/

const escaped = (character: string): string =>
  [...Array(character.length).keys()]
    .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`)
    .join("")

/**
 * A text as it may be written to a terminal: what that would obey stands as `\u009b`. A line of JSON
 * means the same afterwards.
 */
export const visible = (text: string): string => text.replaceAll(obeyed, escaped)

/** How many characters of a text `visible` changes. */
export const countObeyed = (text: string): number => text.match(obeyed)?.length ?? 0

/** The same, but for the colours of results. */
export const visibleInColours = (text: string): string =>
  text
    .split(sequence)
    .map((part, index) => {
      if (index === 0) return visible(part)
      return colour.test(part) ? `${sequence}${visible(part)}` : visible(`${sequence}${part}`)
    })
    .join("")
