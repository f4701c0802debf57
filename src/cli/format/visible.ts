/**
 * Characters that control a terminal (C0, DEL and C1 except newlines and tabs), that reverse or
 * hide text, or that end a line. The joiners that scripts and emoji need are excluded.
 */
const obeyed = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu

const sequence = "\u001b["
/** The colours of results, and their end. */
const colour = /^(?:2|22|31|32|33|36|39)m/

const escaped = (character: string): string =>
  [...Array(character.length).keys()]
    .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`)
    .join("")

/**
 * Returns a text that is safe to write to a terminal: control characters become escapes such as
 * `\u009b`. A line of JSON keeps its meaning.
 */
export const visible = (text: string): string => text.replaceAll(obeyed, escaped)

/** Returns how many characters `visible` escapes. */
export const countObeyed = (text: string): number => text.match(obeyed)?.length ?? 0

/** As {@link visible}, but keeps the colours of results. */
export const visibleInColours = (text: string): string =>
  text
    .split(sequence)
    .map((part, index) => {
      if (index === 0) return visible(part)
      return colour.test(part) ? `${sequence}${visible(part)}` : visible(`${sequence}${part}`)
    })
    .join("")
